// What is seen of a run through a camera, as layers for `draw`. The only place that decides how things look.

import { ticks } from "./camera.js";
import { clock, number, whole } from "./format.js";
import { AXES } from "./layout.js";

export const FONT = "12px system-ui, 'DejaVu Sans', sans-serif";

const SHAPE = { seed: "diamond", mutation: "circle", merge: "square", graft: "triangle", human: "pentagon" };

export const MOST_COUNTED = 400; // candidates shown, up to which the folded ones are counted beside them

const MOST_LABELS = 40;
const WIDEST = 130; // pixels of a label
const MOST_INTERVALS = 2000;
const CELL = 2; // pixels: marks nearer than this are one

// `look`: theme, colours (of `colouring`), options; `focus`: selected, pinned and hovered indices or null.
export function scene(picture, camera, look, focus) {
  const layers = [
    ...frame(picture, camera, look.theme),
    ...ghosts(picture, camera, look.theme),
    ...edges(picture, camera, look),
    ...course(picture, camera, look.theme),
    ...intervals(picture, camera, look.theme),
    ...marks(picture, camera, look),
    ...focusRings(picture, camera, look.theme, focus),
    ...labels(picture, camera, look.theme),
  ];
  return { width: camera.width, height: camera.height, plot: camera.plot, ground: look.theme.ground, layers };
}

// --- axes -----------------------------------------------------------------------------------------------------------

function frame(picture, camera, theme) {
  if (!picture.shown.size) return [];
  if (picture.layout.kind !== "scored") return captions(picture, camera, theme);
  const { plot, window } = camera;
  const across = ticks(window.left, window.right, plot.width, 110).filter((x) => x >= 0 && (picture.axis === "dollars" || Number.isInteger(x)));
  const up = picture.layout.bare ? [] : ticks(Math.max(window.low, picture.layout.low), window.high, plot.height, 48);
  const lines = up.flatMap((y) => [plot.x, camera.toY(y), plot.x + plot.width, camera.toY(y)]);
  const below = camera.toY(picture.layout.below);
  const bottom = plot.y + plot.height;
  const text = { kind: "text", colour: theme.faint, font: FONT };
  const unit = AXES[picture.axis].title;
  return [
    { kind: "lines", points: lines, colour: theme.grid, width: 1, clipped: true },
    { ...text, align: "right", items: up.map((y) => [plot.x - 8, camera.toY(y), levelText(picture, y)]) },
    { ...text, align: "right", items: below < bottom && below > plot.y ? [[plot.x - 8, below, "no score"]] : [] },
    { ...text, align: "center", items: across.map((x) => [camera.toX(x), bottom + 14, axisText(picture.axis, x)]) },
    { ...text, align: "right", items: [[plot.x + plot.width, bottom + 28, unit]] },
  ];
}

// What across and up mean where neither is a quantity.
function captions({ layout, run, root }, camera, theme) {
  const { plot, window } = camera;
  const bottom = plot.y + plot.height;
  const text = { kind: "text", colour: theme.faint, font: FONT };
  const right = (told) => ({ ...text, align: "right", items: [[plot.x + plot.width, bottom + 28, told]] });
  const left = (told) => ({ ...text, items: [[plot.x, bottom + 28, told]] });
  if (layout.kind === "laned") return [left("top lane: the way to the best"), right("oldest → newest")];
  const steps = ticks(window.left, window.right, plot.width, 110).filter((x) => x >= 0 && Number.isInteger(x));
  const items = steps.map((x) => [camera.toX(x), bottom + 14, whole(x)]);
  return [left(`all that was bred from ${run.short(root)}`), { ...text, align: "center", items }, right("generations")];
}

function levelText(picture, y) {
  const { low, high } = picture.layout;
  if (picture.scale !== "score") {
    const value = picture.layout.value(y);
    return value && Math.abs(value) < 1e-4 ? value.toExponential(0) : String(Number(value.toPrecision(2)));
  }
  const places = Math.min(Math.max(2 - Math.floor(Math.log10(high - low || 1)), 0), 9);
  return number(picture.layout.value(y), places);
}

function axisText(axis, x) {
  if (axis === "time") return clock(x);
  return axis === "dollars" ? `$${Number(x.toPrecision(4))}` : whole(Math.round(x));
}

// --- edges ----------------------------------------------------------------------------------------------------------

const EDGES = {
  parent: { width: 1.25 },
  folded: { width: 1.25, dash: [5, 3] },
  merge: { width: 1, dash: [] },
  graft: { width: 1, dash: [7, 2, 2, 2] },
  inspiration: { width: 1, dash: [1, 3] },
};

function edges(picture, camera, look) {
  const points = { parent: [], folded: [], merge: [], graft: [], inspiration: [], way: [] };
  const { x, y } = picture.layout;
  const seen = new Seen();
  for (const [child, to, kind] of picture.edges) {
    if (!look.merges && (kind === "merge" || kind === "graft" || kind === "inspiration")) continue;
    if (outside(camera, x[to], y[to], x[child], y[child])) continue;
    const ends = [camera.toX(x[to]), camera.toY(y[to]), camera.toX(x[child]), camera.toY(y[child])];
    if (seen.before(ends)) continue;
    points[kind].push(...ends);
  }
  const kind = picture.layout.kind === "scored" ? "lines" : "curves";
  const colours = { merge: look.theme.selected, graft: look.theme.pinned, inspiration: look.theme.faint };
  const drawn = Object.entries(EDGES).map(([name, style]) => ({
    ...style,
    kind,
    points: points[name],
    colour: colours[name] ?? look.theme.edge,
    alpha: name === "parent" || name === "folded" ? faintness(points[name].length / 4) : 0.65,
    clipped: true,
  }));
  return [...drawn, { kind, points: points.way, colour: look.theme.best, width: 2, clipped: true }].filter((each) => each.points.length);
}

// A few edges are to be followed one by one; of many it is to be seen where they are dense, and what lies over them.
function faintness(amount) {
  return Math.min(Math.max(200 / amount, 0.25), 0.8);
}

function outside({ window: { left, right, low, high } }, x, y, toX, toY) {
  const seen = Math.max(x, toX) >= left && Math.min(x, toX) <= right && Math.max(y, toY) >= low && Math.min(y, toY) <= high;
  return !seen; // also where one of them is nowhere
}

// Whether an edge was drawn already from and to about the same pixels; it forgets what is long ago.
class Seen {
  constructor() {
    this.keys = new Int32Array(1 << 14);
  }

  before([x, y, toX, toY]) {
    const cell = (value) => (value / CELL) | 0;
    const key = (Math.imul(cell(x), 73856093) ^ Math.imul(cell(y), 19349663) ^ Math.imul(cell(toX), 83492791) ^ Math.imul(cell(toY), 50331653)) | 1;
    const place = (key >>> 8) & (this.keys.length - 1);
    const known = this.keys[place] === key;
    this.keys[place] = key;
    return known;
  }
}

// --- the best so far --------------------------------------------------------------------------------------------------

function course(picture, camera, theme) {
  const { layout, run, axis } = picture;
  if (layout.kind !== "scored" || !run.course.length) return [];
  const at = { evaluations: 1, time: 2, dollars: 3 }[axis];
  const points = [];
  let last = null;
  for (const step of run.course) {
    const x = camera.toX(axis === "time" ? step[at] / 1000 : step[at]);
    const y = camera.toY(layout.level(run.value[step[0]]));
    if (last !== null) points.push(x, last);
    points.push(x, y);
    last = y;
  }
  if (last !== null) points.push(camera.toX(layout.right), last);
  return [{ kind: "path", points, colour: theme.course, width: 1, alpha: 0.55, clipped: true }, ...holdouts(picture, camera, theme)];
}

function holdouts({ layout, run }, camera, theme) {
  const points = [];
  const bars = [];
  for (const [index, [value, low, high]] of run.holdout) {
    if (value === null || Number.isNaN(layout.x[index])) continue;
    const x = camera.toX(layout.x[index]) + 5;
    points.push(x, camera.toY(layout.level(value)));
    if (low !== null) bars.push(x, camera.toY(layout.level(low)), x, camera.toY(layout.level(high)));
  }
  return [
    { kind: "lines", points: bars, colour: theme.pinned, width: 1, clipped: true },
    { kind: "marks", points, shape: "diamond", radius: 3, outline: theme.pinned, clipped: true },
  ];
}

function intervals({ layout, run, shown }, camera, theme) {
  if (layout.kind !== "scored" || shown.size > MOST_INTERVALS) return [];
  const points = [];
  for (const index of shown) {
    const around = run.margin[index];
    if (!around || !Number.isFinite(around) || Number.isNaN(run.value[index])) continue;
    const [x, value] = [camera.toX(layout.x[index]), run.value[index]];
    points.push(x, camera.toY(layout.level(value - around)), x, camera.toY(layout.level(value + around)));
  }
  return [{ kind: "lines", points, colour: theme.edge, width: 1, alpha: 0.6, clipped: true }];
}

// --- candidates -------------------------------------------------------------------------------------------------------

// Dead ends that are folded, as faint dots: how much was tried, and how good it was.
function ghosts({ layout, shown, ghostly }, camera, theme) {
  if (layout.kind !== "scored" || !ghostly) return [];
  const spread = new Spread(camera);
  const points = [];
  for (const index of ghostly)
    if (!shown.has(index) && spread.takes(layout.x[index], layout.y[index])) points.push(spread.x, spread.y);
  return [{ kind: "marks", points, shape: "dot", radius: 1.25, fill: theme.dead, clipped: true }];
}

function marks(picture, camera, look) {
  const { layout, run, shown } = picture;
  const groups = new Map();
  const radius = shown.size > 3000 ? 2.5 : shown.size > 600 ? 3.5 : 4.5;
  const spread = new Spread(camera);
  for (const index of shown) {
    const kind = run.kind(index);
    const telling = kind !== "scored" && kind !== "failed" && kind !== "waiting";
    if (!spread.takes(layout.x[index], layout.y[index], telling)) continue;
    const style = STYLES[kind](look, run, index);
    const key = `${telling ? 1 : 0} ${style.shape} ${style.fill} ${style.outline}`;
    if (!groups.has(key)) groups.set(key, { kind: "marks", points: [], radius: radius * (style.scale ?? 1), clipped: true, ...style });
    groups.get(key).points.push(spread.x, spread.y);
  }
  return [...groups.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, group]) => group);
}

const STYLES = {
  scored: (look, run, index) => ({ shape: SHAPE[run.operatorName(index)] ?? "circle", fill: look.colours.colour(index) }),
  failed: (look, run, index) => ({ shape: SHAPE[run.operatorName(index)] ?? "circle", outline: look.theme.failed, fill: look.theme.ground }),
  waiting: (look) => ({ shape: "circle", outline: look.theme.faint, fill: look.theme.ground, scale: 0.8 }),
  pruned: (look, run, index) => ({ shape: "cross", outline: run.failed(index) ? look.theme.failed : look.theme.pinned, width: 1 }),
  promoted: (look) => ({ shape: "plus", fill: look.theme.hues[2], outline: look.theme.ground, scale: 1.3 }),
  seed: (look, run, index) => ({ shape: "diamond", fill: look.colours.colour(index), outline: look.theme.ground, scale: 1.4 }),
  best: (look) => ({ shape: "star", fill: look.theme.best, outline: look.theme.ground, scale: 1.6 }),
};

// Lets one mark into each cell of the screen, so that a hundred thousand cost what can be seen of them.
class Spread {
  constructor(camera) {
    this.camera = camera;
    this.columns = Math.ceil(camera.width / CELL);
    this.taken = new Uint8Array(this.columns * Math.ceil(camera.height / CELL));
  }

  takes(worldX, worldY, always = false) {
    if (!this.camera.sees(worldX, worldY)) return false;
    this.x = this.camera.toX(worldX);
    this.y = this.camera.toY(worldY);
    const cell = Math.floor(this.y / CELL) * this.columns + Math.floor(this.x / CELL);
    if (this.taken[cell] && !always) return false;
    this.taken[cell] = 1;
    return true;
  }
}

function focusRings({ layout }, camera, theme, { selected, pinned, hovered }) {
  const rings = [[pinned, theme.pinned, 10], [hovered, theme.faint, 8], [selected, theme.selected, 9]];
  return rings
    .filter(([index]) => index !== null && !layout.bare && camera.sees(layout.x[index], layout.y[index]))
    .map(([index, outline, radius]) => ({
      kind: "marks",
      points: [camera.toX(layout.x[index]), camera.toY(layout.y[index])],
      shape: "circle",
      radius,
      outline,
      width: 2,
      clipped: true,
    }));
}

// --- words ------------------------------------------------------------------------------------------------------------

// The ids of what matters, and how many dead ends are folded into a candidate.
function labels(picture, camera, theme) {
  const edge = nameEdge(camera);
  const named = placedNames(picture, camera);
  const style = { kind: "text", colour: theme.text, font: FONT, halo: theme.ground, clipped: true };
  const left = named.filter(([x]) => x >= edge).map(([, y, text]) => [camera.plot.x + camera.plot.width - 12, y, text]);
  return [
    { ...style, items: counts(picture, camera), colour: theme.faint, font: "10px system-ui, 'DejaVu Sans', sans-serif" },
    { ...style, items: named.filter(([x]) => x < edge) },
    { ...style, items: left, align: "right" },
  ];
}

// Beside candidates, as [x, y, text, index]: how many dead ends are folded into each, or that its own are unfolded.
export function counts(picture, camera) {
  const { layout, folded, shown, open } = picture;
  if (shown.size >= MOST_COUNTED) return [];
  const told = [...[...folded].map(([index, amount]) => [index, `${whole(amount)}▸`]), ...[...open].map((index) => [index, "▾"])];
  const seen = told.filter(([index]) => shown.has(index) && camera.sees(layout.x[index], layout.y[index]));
  const placed = seen.map(([index, text]) => [camera.toX(layout.x[index]) + 7, camera.toY(layout.y[index]) + 12, text, index]);
  const named = placedNames(picture, camera);
  const free = ([x, y]) => named.every(([left, level]) => x < left - 26 || x > left + WIDEST || Math.abs(y - level) > 11);
  return sparse(placed.filter(free), 26, 12);
}

// The count that a pixel is on: the candidate that it belongs to, or null.
export function countAt(picture, camera, x, y) {
  const found = counts(picture, camera).find(([left, middle, text]) => x >= left - 2 && x <= left + 6 * text.length + 6 && Math.abs(y - middle) <= 8);
  return found ? found[3] : null;
}

function nameEdge({ plot }) {
  return plot.x + plot.width - WIDEST;
}

function placedNames(picture, camera) {
  const edge = nameEdge(camera);
  return sparse(names(picture, camera).map(([x, ...rest]) => [Math.min(x, edge), ...rest]), WIDEST, 14);
}

// The best, the seed, what people promoted, and the steps that brought most.
function names({ layout, run, shown, steps }, camera) {
  const telling = [run.best, run.seed, ...run.promoted, ...steps].filter((index) => shown.has(index));
  const found = [];
  for (const index of new Set(telling)) {
    if (index === null || !camera.sees(layout.x[index], layout.y[index]) || found.length > MOST_LABELS) continue;
    const step = index === run.seed ? "seed" : run.gainText(index);
    found.push([camera.toX(layout.x[index]) + 9, camera.toY(layout.y[index]) - 10, `${run.short(index)} ${step}`]);
  }
  return found;
}

// Those that do not overlap with an earlier one.
function sparse(items, width, height) {
  const kept = [];
  for (const item of items)
    if (kept.every(([x, y]) => Math.abs(x - item[0]) > width || Math.abs(y - item[1]) > height)) kept.push(item);
  return kept;
}
