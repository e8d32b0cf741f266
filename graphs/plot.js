// The graph on a canvas: camera, mouse, touch and minimap. It draws when something changed, once a frame at most.

import { Camera } from "./camera.js";
import { draw } from "./draw.js";
import { countAt, scene } from "./scene.js";

const NEAR = 14; // pixels within which a mark is meant
const TWICE = 500; // milliseconds within which two clicks are a double-click

export class Plot {
  // `on`: {select(index), hover(index, x, y, folded), open(index)}.
  constructor(canvas, minimap, on) {
    Object.assign(this, { canvas, minimap, on });
    this.camera = new Camera(1, 1);
    this.focus = { selected: null, pinned: null, hovered: null };
    this.fitted = true;
    this.unfolded = -TWICE; // when, in milliseconds, a click unfolded or folded something
    new ResizeObserver(() => this.resize()).observe(canvas.parentElement);
    this.listen();
  }

  // Show a picture; the camera stays, unless the axes are others or it showed everything.
  show(picture, look) {
    const before = this.picture;
    this.picture = picture;
    this.look = look;
    const same = before && before.view === picture.view && before.axis === picture.axis && before.scale === picture.scale && before.run.about.run === picture.run.about.run;
    if (!same) this.fit();
    else if (this.fitted && !this.held) this.grow();
    this.redraw();
  }

  fit() {
    this.fitted = true;
    if (!this.picture) return;
    this.camera.fit(this.picture.layout);
    this.redraw();
  }

  // While everything is in view and a run goes on, the view widens in steps, so that it is not always in motion.
  grow() {
    const { layout } = this.picture;
    const { right, low, high } = this.camera.window;
    const label = (high - low) * 0.05; // the room above the best for its name
    const outgrown = layout.right > right || layout.high + label > high || (layout.below ?? layout.low) < low;
    if (!outgrown) return;
    this.camera.fit({ ...layout, right: layout.right * 1.15 });
  }

  zoom(factor, axes = "xy", x = this.camera.width / 2, y = this.camera.height / 2) {
    this.fitted = false;
    this.camera.zoom(factor, x, y, axes);
    this.redraw();
  }

  pan(dx, dy) {
    this.on.hover(null);
    this.fitted = false;
    this.camera.pan(dx, dy);
    this.redraw();
  }

  mark(focus) {
    Object.assign(this.focus, focus);
    this.redraw();
  }

  // Bring a candidate into view, where it is not.
  reveal(index) {
    const { x, y } = this.picture.layout;
    if (!Number.isNaN(x[index])) this.camera.centre(x[index], y[index]);
    this.redraw();
  }

  scene() {
    return scene(this.picture, this.camera, this.look, this.focus);
  }

  // --- drawing --------------------------------------------------------------------------------------------------------

  redraw() {
    if (this.waiting || !this.picture) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = null;
      this.paint();
    });
  }

  paint() {
    const context = sharp(this.canvas, this.camera.width, this.camera.height);
    draw(context, this.scene());
    this.paintMinimap();
  }

  paintMinimap() {
    const { clientWidth, clientHeight } = this.minimap;
    if (!clientHeight) return;
    const whole = new Camera(clientWidth, clientHeight);
    Object.defineProperty(whole, "plot", { value: { x: 2, y: 2, width: clientWidth - 4, height: clientHeight - 4 } });
    whole.fit(this.picture.layout);
    const context = sharp(this.minimap, clientWidth, clientHeight);
    if (this.thumbnail?.picture !== this.picture || this.thumbnail.look !== this.look || this.thumbnail.width !== clientWidth) this.takeThumbnail(whole);
    context.drawImage(this.thumbnail.image, 0, 0, clientWidth, clientHeight);
    const { left, right, low, high } = this.camera.window;
    context.strokeStyle = this.look.theme.selected;
    context.lineWidth = 1.5;
    const [x, y] = [whole.toX(left), whole.toY(high)];
    context.strokeRect(x, y, whole.toX(right) - x, whole.toY(low) - y);
    this.whole = whole;
  }

  // The whole graph without words, drawn once for each picture.
  takeThumbnail(whole) {
    const { layers, ...rest } = scene(this.picture, whole, this.look, { selected: null, pinned: null, hovered: null });
    const kept = layers.filter((layer) => layer.kind !== "text").map((layer) => ({ ...layer, radius: Math.min(layer.radius ?? 1, 2), width: 0.75 }));
    const image = document.createElement("canvas");
    draw(sharp(image, whole.width, whole.height), { ...rest, layers: kept });
    this.thumbnail = { picture: this.picture, look: this.look, width: whole.width, image };
  }

  resize() {
    const { clientWidth, clientHeight } = this.canvas.parentElement;
    this.camera.width = clientWidth;
    this.camera.height = clientHeight;
    if (this.picture) this.redraw();
  }

  // --- mouse and touch ------------------------------------------------------------------------------------------------

  listen() {
    const { canvas } = this;
    const pointers = new Map();
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      pointers.set(event.pointerId, event);
      this.held = { x: event.offsetX, y: event.offsetY, moved: false };
    });
    canvas.addEventListener("pointermove", (event) => (pointers.size ? this.drag(event, pointers) : this.hover(event)));
    const release = (event) => {
      pointers.delete(event.pointerId);
      if (this.held && !this.held.moved && event.type === "pointerup") this.click(event);
      this.held = null;
    };
    canvas.addEventListener("pointerup", release);
    canvas.addEventListener("pointercancel", release);
    canvas.addEventListener("pointerleave", () => this.on.hover(null));
    canvas.addEventListener("dblclick", (event) => this.focus.selected !== null && !this.repeats(event) && this.on.open(this.focus.selected));
    this.minimap.addEventListener("pointerdown", (event) => this.jump(event));
    this.minimap.addEventListener("pointermove", (event) => event.buttons && this.jump(event));
  }

  wheel(event) {
    event.preventDefault();
    const axes = event.shiftKey ? "x" : event.altKey ? "y" : "xy";
    this.zoom(Math.exp(-Math.sign(event.deltaY) * Math.min(Math.abs(event.deltaY), 120) * 0.0025), axes, event.offsetX, event.offsetY);
  }

  drag(event, pointers) {
    const before = pointers.get(event.pointerId);
    const [dx, dy] = [event.offsetX - before.offsetX, event.offsetY - before.offsetY];
    if (!this.held.moved && Math.hypot(event.offsetX - this.held.x, event.offsetY - this.held.y) < 4) return;
    this.held.moved = true;
    if (pointers.size === 2) this.pinch(event, pointers);
    else this.pan(dx, dy);
    pointers.set(event.pointerId, event);
  }

  pinch(event, pointers) {
    const other = [...pointers.values()].find((each) => each.pointerId !== event.pointerId);
    const before = pointers.get(event.pointerId);
    const apart = (each) => Math.hypot(each.offsetX - other.offsetX, each.offsetY - other.offsetY);
    this.zoom(apart(event) / Math.max(apart(before), 1), "xy", other.offsetX, other.offsetY);
  }

  hover(event) {
    const folded = this.foldedAt(event);
    const index = folded ?? this.near(event.offsetX, event.offsetY);
    if (index !== this.focus.hovered) this.mark({ hovered: index });
    this.on.hover(index, event.offsetX, event.offsetY, folded !== null);
    this.canvas.style.cursor = index === null ? "grab" : "pointer";
  }

  click(event) {
    const folded = this.foldedAt(event);
    const index = folded ?? this.near(event.offsetX, event.offsetY);
    if (index === null || this.repeats(event)) return;
    if (folded === null) this.on.select(index);
    else this.on.open(index);
    this.unfolded = folded === null ? -TWICE : event.timeStamp;
  }

  // Whether it is the second click of one on a count: the first did what is meant, and what is there now is something else.
  repeats({ timeStamp }) {
    return timeStamp - this.unfolded < TWICE;
  }

  // Whose dead ends are folded or unfolded by a click there; null: nobody's.
  foldedAt({ offsetX, offsetY }) {
    return this.picture ? countAt(this.picture, this.camera, offsetX, offsetY) : null;
  }

  jump(event) {
    const { window } = this.camera;
    const x = this.whole.fromX(event.offsetX);
    const y = this.whole.fromY(event.offsetY);
    const [halfWidth, halfHeight] = [(window.right - window.left) / 2, (window.high - window.low) / 2];
    this.camera.window = { left: x - halfWidth, right: x + halfWidth, low: y - halfHeight, high: y + halfHeight };
    this.fitted = false;
    this.redraw();
  }

  // The shown candidate that is nearest to a pixel; what was folded only where nothing else is near.
  near(x, y) {
    if (!this.picture) return null;
    const { shown, ghostly } = this.picture;
    return this.nearest(x, y, shown) ?? (ghostly ? this.nearest(x, y, ghostly) : null);
  }

  nearest(x, y, among) {
    const { layout } = this.picture;
    let [found, least] = [null, NEAR * NEAR];
    for (const index of among) {
      if (!this.camera.sees(layout.x[index], layout.y[index])) continue;
      const away = (this.camera.toX(layout.x[index]) - x) ** 2 + (this.camera.toY(layout.y[index]) - y) ** 2;
      if (away < least) [found, least] = [index, away];
    }
    return found;
  }
}

// The canvas's context at the resolution of the screen.
function sharp(canvas, width, height) {
  const ratio = devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * ratio)) canvas.width = Math.round(width * ratio);
  if (canvas.height !== Math.round(height * ratio)) canvas.height = Math.round(height * ratio);
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}
