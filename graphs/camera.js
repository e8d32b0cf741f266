// From the world to pixels and back. It moves only when a person moves it.

export const MARGIN = { left: 64, right: 24, top: 16, bottom: 34 };

export class Camera {
  constructor(width, height) {
    this.width = width;
    this.height = height;
    this.window = { left: 0, right: 1, low: 0, high: 1 };
  }

  get plot() {
    return {
      x: MARGIN.left,
      y: MARGIN.top,
      width: Math.max(this.width - MARGIN.left - MARGIN.right, 1),
      height: Math.max(this.height - MARGIN.top - MARGIN.bottom, 1),
    };
  }

  // Show a whole layout.
  fit(layout) {
    const bottom = layout.below ?? layout.low;
    const room = (layout.high - bottom) * 0.06 || 0.5;
    const side = layout.right * 0.02 || 0.5;
    this.window = { left: -side, right: layout.right + side, low: bottom - room, high: layout.high + 2 * room };
  }

  toX(x) {
    const { left, right } = this.window;
    return this.plot.x + ((x - left) / (right - left)) * this.plot.width;
  }

  toY(y) {
    const { low, high } = this.window;
    return this.plot.y + ((high - y) / (high - low)) * this.plot.height;
  }

  fromX(pixel) {
    const { left, right } = this.window;
    return left + ((pixel - this.plot.x) / this.plot.width) * (right - left);
  }

  fromY(pixel) {
    const { low, high } = this.window;
    return high - ((pixel - this.plot.y) / this.plot.height) * (high - low);
  }

  pan(dx, dy) {
    const { left, right, low, high } = this.window;
    const x = (dx / this.plot.width) * (right - left);
    const y = (dy / this.plot.height) * (high - low);
    this.window = { left: left - x, right: right - x, low: low + y, high: high + y };
  }

  // Make the world larger (`factor` over 1) around a pixel, along one axis or both.
  zoom(factor, x, y, axes = "xy") {
    const { left, right, low, high } = this.window;
    const [across, up] = [this.fromX(x), this.fromY(y)];
    const scaled = (edge, centre) => centre + (edge - centre) / factor;
    this.window = {
      left: axes.includes("x") ? scaled(left, across) : left,
      right: axes.includes("x") ? scaled(right, across) : right,
      low: axes.includes("y") ? scaled(low, up) : low,
      high: axes.includes("y") ? scaled(high, up) : high,
    };
  }

  centre(x, y) {
    const { left, right, low, high } = this.window;
    if (x < left || x > right) this.window = { ...this.window, left: x - (right - left) / 2, right: x + (right - left) / 2 };
    if (y < low || y > high) this.window = { ...this.window, low: y - (high - low) / 2, high: y + (high - low) / 2 };
  }

  sees(x, y) {
    const { left, right, low, high } = this.window;
    return x >= left && x <= right && y >= low && y <= high;
  }
}

// Round numbers between two ends, about one per `room` pixels.
export function ticks(low, high, pixels, room) {
  const wanted = Math.max(pixels / room, 1);
  const rough = (high - low) / wanted;
  if (!(rough > 0) || !Number.isFinite(rough)) return [];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough);
  const found = [];
  for (let k = Math.ceil(low / step); k * step <= high && found.length < 100; k += 1) found.push(k * step || 0);
  return found;
}
