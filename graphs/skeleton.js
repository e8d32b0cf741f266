// Which candidates are shown: the skeleton, what a filter chose, and into whom the rest is folded.

// Those that a person looks for, and all that they come from: as `skeleton` in evogit/review/graph.py.
export function skeleton(run) {
  const wanted = [run.seed, run.best, ...run.records, ...run.decided, ...Object.values(run.living)];
  const shown = run.ancestors(wanted.filter((index) => index !== null && index !== undefined));
  for (let added = [...shown]; added.length; ) {
    const brought = added.flatMap((index) => run.inspiration.get(index) ?? []).filter((each) => !shown.has(each));
    added = [...run.ancestors(brought)].filter((index) => !shown.has(index));
    for (const index of added) shown.add(index);
  }
  return shown;
}

// For each candidate the nearest shown one along first parents (-1: none), and how many others each stands for.
export function fold(run, shown) {
  const owner = new Int32Array(run.amount);
  const folded = new Map();
  for (let index = 0; index < run.amount; index += 1) {
    const parent = run.parent[index];
    owner[index] = shown.has(index) ? index : parent < 0 ? -1 : owner[parent];
    if (owner[index] !== index && owner[index] >= 0) folded.set(owner[index], (folded.get(owner[index]) ?? 0) + 1);
  }
  return { owner, folded };
}

// Edges between shown candidates, as [child, ancestor, kind]: `folded` is a parent's that leads past some that are folded.
export function shownEdges(run, shown, owner) {
  const edges = [];
  for (const child of shown) {
    const known = new Set();
    for (const [origin, kind] of run.edges(child)) {
      const to = origin < owner.length ? owner[origin] : -1;
      if (to < 0 || to === child || known.has(to)) continue;
      known.add(to);
      edges.push([child, to, kind === "parent" && to !== origin ? "folded" : kind]);
    }
  }
  return edges;
}
