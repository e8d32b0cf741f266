// Lines of best-so-far over an axis, with intervals, drawn by the same `draw` as the graph.

import { Camera, ticks } from "./camera.js";
import { draw } from "./draw.js";
import { el } from "./dom.js";
import { number, whole } from "./format.js";
import { FONT } from "./scene.js";

// `lines`: [{name, points: [[x, y, low, high], …]}]; `unit` of the x axis; `places`: decimals of y.
export function curves({ lines, unit, places, falling }, theme, width, height, xText = whole) {
  const camera = new Camera(width, height);
  const sign = falling ? -1 : 1;
  const all = lines.flatMap(({ points }) => points).filter((point) => point[1] !== null);
  if (!all.length) return { width, height, plot: camera.plot, ground: theme.ground, layers: [] };
  const ys = all.flatMap(([, y, low, high]) => [y, low ?? y, high ?? y]).map((y) => sign * y);
  const [low, high] = [Math.min(...ys), Math.max(...ys)];
  camera.fit({ right: Math.max(...all.map(([x]) => x)) || 1, low, high: high > low ? high : low + 1 });
  const { plot, window } = camera;
  const text = { kind: "text", colour: theme.faint, font: FONT };
  const up = ticks(window.low, window.high, plot.height, 44);
  const steps = ticks(0, window.right, plot.width, 100).filter((x) => xText !== whole || Number.isInteger(x));
  const layers = [
    { kind: "lines", points: up.flatMap((y) => [plot.x, camera.toY(y), plot.x + plot.width, camera.toY(y)]), colour: theme.grid, width: 1 },
    { ...text, align: "right", items: up.map((y) => [plot.x - 8, camera.toY(y), number(sign * y, places)]) },
    { ...text, align: "center", items: steps.map((x) => [camera.toX(x), plot.y + plot.height + 14, xText(x)]) },
    { ...text, align: "right", items: [[plot.x + plot.width, plot.y + plot.height + 28, unit]] },
  ];
  lines.forEach(({ points }, k) => layers.push(...line(points, camera, sign, theme.hues[k % theme.hues.length])));
  return { width, height, plot, ground: theme.ground, layers };
}

function line(points, camera, sign, colour) {
  const stepped = (at) => {
    const found = [];
    for (const point of points) {
      if (point[at] === null || point[at] === undefined) continue;
      const [x, y] = [camera.toX(point[0]), camera.toY(sign * point[at])];
      if (found.length) found.push(x, found.at(-1));
      found.push(x, y);
    }
    return found;
  };
  const [low, high] = [stepped(2), stepped(3)];
  const back = [];
  for (let k = high.length - 2; k >= 0; k -= 2) back.push(high[k], high[k + 1]);
  const band = low.length ? [{ kind: "area", points: [...low, ...back], colour, alpha: 0.15 }] : [];
  return [...band, { kind: "path", points: stepped(1), colour, width: 2 }];
}

export function canvasOf(make, height, label) {
  const canvas = el("canvas", { class: "curve", role: "img", "aria-label": label });
  canvas.style.height = `${height}px`; // by script, as the page allows no inline styles
  new ResizeObserver(() => {
    const width = canvas.clientWidth;
    const ratio = devicePixelRatio || 1;
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    draw(context, make(width, height));
  }).observe(canvas);
  return canvas;
}
