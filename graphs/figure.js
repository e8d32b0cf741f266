// A run as a figure on paper, without a browser: what `evogit graph --format svg` draws.

import { Camera } from "./camera.js";
import { draw } from "./draw.js";
import { THEMES, colouring } from "./palette.js";
import { picture } from "./picture.js";
import { Run } from "./run.js";
import { scene } from "./scene.js";
import { SvgContext } from "./svg_context.js";

// `options`: width and height in pixels, theme, view, axis, scale, colour, everything (fold nothing).
export function figure(payload, options) {
  const run = new Run(payload);
  const { width, height, theme, view, axis, scale, colour, everything } = options;
  const shown = picture(run, { view, axis, scale, chosen: null, open: [], root: run.seed, everything, deadEnds: true });
  const camera = new Camera(width, height);
  camera.fit(shown.layout);
  const look = { theme: THEMES[theme], colours: colouring(run, colour, THEMES[theme]), merges: true };
  return svg(scene(shown, camera, look, { selected: null, pinned: null, hovered: null }));
}

export function svg(drawn) {
  const context = new SvgContext(drawn.width, drawn.height);
  draw(context, drawn);
  return context.toString();
}
