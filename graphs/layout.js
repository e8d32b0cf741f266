// Where candidates are in the world: x and y per index, in the units of the axes (NaN: nowhere).

export const AXES = {
  time: { title: "time", of: (run, index) => (run.elapsed[index] >= 0 ? run.elapsed[index] / 1000 : run.time[index] - run.about.began) },
  evaluations: { title: "evaluations", of: (run, index) => run.evaluated[index] || lastEvaluation(run) + 1 },
  dollars: { title: "dollars", of: (run, index) => run.dollars[index] ?? 0 },
};

export const SCALES = {
  score: { level: (run) => (value) => (run.higherIsBetter ? value : -value), value: (run) => (level) => (run.higherIsBetter ? level : -level) },
  "distance to the best": { level: distanceLevel, value: (run) => (level) => 10 ** -level },
};

const LOWEST = 0.02; // the share of scores that may be off the scale

// Score against an axis, for `all`, on a scale that suits the `shown`. Better is up, whichever way the metric goes; what
// has no score lies in a band below.
export function scored(run, axis, scale, all, shown) {
  const x = new Float64Array(run.amount).fill(NaN);
  const y = new Float64Array(run.amount).fill(NaN);
  const place = AXES[axis].of;
  const level = SCALES[scale].level(run);
  const { low, high, bare } = range(run, shown, level);
  const below = low - (high - low) * 0.06;
  for (const index of all) {
    x[index] = place(run, index);
    y[index] = Number.isNaN(run.value[index]) ? below : Math.max(level(run.value[index]), low);
  }
  return { kind: "scored", x, y, level, value: SCALES[scale].value(run), low, high, bare, below, right: extent(x) };
}

// Decades between a value and the best one, which itself is put a little nearer than any other.
function distanceLevel(run) {
  const sign = run.higherIsBetter ? 1 : -1;
  const best = run.best === null ? 0 : sign * run.value[run.best];
  let least = Infinity;
  for (const value of run.value) if (sign * value < best && best - sign * value < least) least = best - sign * value;
  const nearest = Number.isFinite(least) ? least / 2 : 1;
  return (value) => -Math.log10(Math.max(best - sign * value, nearest));
}

// Levels from the lowest that matters to the best; outliers below lie on the lower edge. `bare`: nothing has a score.
function range(run, shown, level) {
  const levels = [];
  for (const index of shown) if (!Number.isNaN(run.value[index])) levels.push(level(run.value[index]));
  if (!levels.length) return { low: 0, high: 1, bare: true };
  levels.sort((a, b) => a - b);
  const seed = run.seed === null ? NaN : level(run.value[run.seed]);
  const typical = levels[Math.floor(levels.length * LOWEST)];
  const low = Number.isNaN(seed) ? typical : Math.min(seed, typical);
  const best = run.best === null ? NaN : level(run.value[run.best]); // the curve leads to it, whatever a filter holds
  const high = Number.isNaN(best) ? levels[levels.length - 1] : Math.max(levels[levels.length - 1], best);
  return high > low ? { low, high } : { low: low - 0.5, high: low + 0.5 };
}

function extent(x) {
  let most = 0;
  for (const each of x) if (each > most) most = each;
  return most || 1;
}

function lastEvaluation(run) {
  return run.course.length ? run.course[run.course.length - 1][1] : 0;
}

// Lanes as `git log --graph` has them, from left (old) to right: the best's lineage stays in the first one.
export function laned(run, shown, edges) {
  const x = new Float64Array(run.amount).fill(NaN);
  const y = new Float64Array(run.amount).fill(NaN);
  const origins = originsOf(edges);
  const order = [...shown].sort((a, b) => a - b);
  const lanes = run.best === null ? [] : [run.best];
  let widest = 0;
  for (let rank = order.length - 1; rank >= 0; rank -= 1) {
    const index = order[rank];
    const lane = arrive(lanes, index);
    [lanes[lane] = null] = origins.get(index) ?? [];
    x[index] = rank;
    y[index] = -lane;
    widest = Math.max(widest, lane);
  }
  return { kind: "laned", x, y, low: -widest, high: 0, right: Math.max(order.length - 1, 1), order };
}

// End all lanes that lead to a candidate; it sits in the first of them, or in the first free one.
function arrive(lanes, index) {
  let here = lanes.indexOf(index);
  if (here < 0) here = lanes.findIndex((each, lane) => each === null && lane > 0);
  if (here < 0) here = Math.max(lanes.length, 1);
  for (let lane = 0; lane < lanes.length; lane += 1) if (lanes[lane] === index) lanes[lane] = null;
  while (lanes.length <= here) lanes.push(null);
  return here;
}

function originsOf(edges) {
  const origins = new Map();
  for (const [child, to] of edges) origins.set(child, [...(origins.get(child) ?? []), to]);
  return origins;
}

// The tree of first parents below `root`: generations from left to right. A candidate with the best below it, else with
// the most, goes on in its parent's line; every other line takes the first place below that is free for as long as it lasts.
export function clade(run, root, shown) {
  const x = new Float64Array(run.amount).fill(NaN);
  const y = new Float64Array(run.amount).fill(NaN);
  const members = [...shown].filter((index) => index >= root).sort((a, b) => a - b);
  const depth = new Map([[root, 0]]);
  for (const index of members) if (depth.has(run.parent[index])) depth.set(index, depth.get(run.parent[index]) + 1);
  const heir = heirs(run, members, depth);
  const ends = []; // of each line, the last generation that is taken
  for (const index of members) {
    if (!depth.has(index) || !Number.isNaN(y[index])) continue;
    const line = freeLine(ends, depth.get(index), index === root ? 0 : -y[run.parent[index]] + 1);
    let last = index;
    for (let each = index; each !== undefined; each = heir.get(each)) {
      x[each] = depth.get(each);
      y[each] = -line;
      last = each;
    }
    ends[line] = depth.get(last);
  }
  return { kind: "clade", x, y, low: -Math.max(ends.length - 1, 1), high: 0, right: Math.max(...ends, 1) };
}

// For each candidate the child that goes on in its line.
function heirs(run, members, depth) {
  const weight = new Map();
  const heir = new Map();
  for (const index of [...members].reverse()) {
    if (!depth.has(index)) continue;
    const own = (weight.get(index) ?? 0) + (index === run.best ? run.amount : 1);
    weight.set(index, own);
    const parent = run.parent[index];
    if (!depth.has(parent) || parent === index) continue;
    weight.set(parent, (weight.get(parent) ?? 0) + own);
    const rival = heir.get(parent);
    if (rival === undefined || own >= weight.get(rival)) heir.set(parent, index);
  }
  return heir;
}

function freeLine(ends, start, from) {
  for (let line = from; line < ends.length; line += 1) if ((ends[line] ?? -1) < start - 1) return line;
  return Math.max(ends.length, from);
}
