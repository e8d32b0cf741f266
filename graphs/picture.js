// What is to be drawn of a run: which candidates, where, joined by which edges. Made anew when the run or the view changes.

import { clade, laned, scored } from "./layout.js";
import { fold, shownEdges, skeleton } from "./skeleton.js";

export const VIEWS = ["skeleton", "lanes", "clade"];

const MOST_LANED = 3000;
const MOST_STEPS = 8; // of the way to the best, that are named

// `view`: one of VIEWS; `chosen`: what a filter holds, or null; `open`: candidates whose dead ends are unfolded;
// `root`: of the clade; `everything`: fold nothing.
export function picture(run, { view, axis, scale, chosen, open, root, everything, deadEnds }) {
  const shown = shownOf(run, { chosen, open, everything, root: view === "clade" ? root : null });
  const { owner, folded } = fold(run, shown);
  const edges = chosen && shown.size > MOST_LANED ? [] : shownEdges(run, shown, owner);
  const layout =
    view === "lanes" ? laned(run, latest(shown, MOST_LANED), edges) : view === "clade" ? clade(run, root, shown) : scored(run, axis, scale, all(run), shown);
  const way = run.best === null ? [] : run.way(run.best);
  const before = new Map(way.map((each, k) => [each, way[k + 1]]));
  for (const edge of edges) if (before.has(edge[0]) && (before.get(edge[0]) === edge[1] || edge[2] === "folded")) edge[2] = "way";
  const steps = way.filter((each) => run.better(each)).sort((a, b) => run.gain(b) - run.gain(a)).slice(0, MOST_STEPS);
  const counted = chosen ? { folded: new Map(), open: [] } : { folded, open };
  return { run, view, axis, scale, root, shown, steps, edges, ...counted, layout, ghostly: deadEnds && !chosen ? all(run) : null };
}

function shownOf(run, { chosen, open, everything, root }) {
  if (chosen) return chosen;
  const base = everything ? new Set(all(run)) : skeleton(run);
  for (const index of open) for (const each of run.descendants([index])) base.add(each);
  if (root === null) return base;
  const members = run.descendants([root]);
  const within = new Set([...base].filter((index) => members.has(index)));
  if (members.size <= MOST_LANED) return members;
  return within.add(root);
}

function latest(shown, most) {
  return shown.size <= most ? shown : new Set([...shown].sort((a, b) => b - a).slice(0, most));
}

function all(run) {
  return { size: run.amount, *[Symbol.iterator]() { for (let index = 0; index < run.amount; index += 1) yield index; } };
}
