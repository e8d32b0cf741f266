// Colours that colour-blind eyes tell apart (Okabe and Ito, 2008), for light and dark grounds. Gold comes last: the way to
// the best has it.

const HUES = {
  light: ["#0072b2", "#d55e00", "#009e73", "#b06a9a", "#3a9bd0", "#6a51a3", "#8c564b", "#a07800"],
  dark: ["#56b4e9", "#ff8f3f", "#2fd3a2", "#e39cc7", "#8fd0ff", "#b39ddb", "#d7a692", "#f0d03c"],
};

export const THEMES = {
  light: {
    ground: "#ffffff",
    text: "#1c2024",
    faint: "#6b737c",
    grid: "#e8eaed",
    edge: "#8b949e",
    dead: "#c3c9d0",
    best: "#b07a00",
    course: "#b07a00",
    failed: "#c0392b",
    selected: "#0b5fff",
    pinned: "#9b2fae",
    others: "#7d858d",
    hues: HUES.light,
  },
  dark: {
    ground: "#14171a",
    text: "#e6e8ea",
    faint: "#98a1aa",
    grid: "#252a2f",
    edge: "#6d7680",
    dead: "#3d444b",
    best: "#ffd24a",
    course: "#ffd24a",
    failed: "#ff7b6b",
    selected: "#6ea8ff",
    pinned: "#e58bf5",
    others: "#9aa3ab",
    hues: HUES.dark,
  },
};

export const COLOURINGS = {
  agent: { names: "agents", of: "agent" },
  operator: { names: "operators", of: "operator" },
  strategy: { names: "strategies", of: "strategy" },
  model: { names: "models", of: "model" },
  status: { names: "statuses", of: "status" },
  file: { names: "files", of: "file" },
  host: { names: "hosts", of: "host" },
};

// What each index is coloured by, and the legend: the most frequent have a hue each, in the order in which they came, so
// that colours stay while a run goes on; the rest share one. The seed has a mark of its own.
export function colouring(run, by, theme) {
  const { names, of } = COLOURINGS[by];
  const counts = new Map();
  for (const place of run[of]) counts.set(place, (counts.get(place) ?? 0) + 1);
  counts.delete(run.names[names].indexOf("seed"));
  const ranked = [...counts.keys()].sort((a, b) => counts.get(b) - counts.get(a) || a - b);
  const most = ranked.slice(0, theme.hues.length).sort((a, b) => a - b);
  const hues = new Map(most.map((place, k) => [place, theme.hues[k]]));
  const legend = [...hues].map(([place, colour]) => [run.names[names][place] || "none", colour]);
  if (ranked.length > hues.size) legend.push([`${ranked.length - hues.size} more`, theme.others]);
  return { colour: (index) => hues.get(run[of][index]) ?? theme.others, legend };
}
