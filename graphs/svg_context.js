// Takes the calls of a canvas that `draw` makes, and writes SVG.

export class SvgContext {
  constructor(width, height) {
    this.width = width;
    this.height = height;
    this.parts = [];
    this.clips = 0;
    this.stack = [];
    this.groups = 0; // open ones since the last `save`
    this.path = [];
    this.lineDash = [];
    this.fillStyle = "#000";
    this.strokeStyle = "#000";
    this.lineWidth = 1;
    this.lineJoin = "miter";
    this.globalAlpha = 1;
    this.font = "12px sans-serif";
    this.textAlign = "left";
    this.textBaseline = "alphabetic";
  }

  toString() {
    const size = `width="${this.width}" height="${this.height}" viewBox="0 0 ${this.width} ${this.height}"`;
    return `<svg xmlns="http://www.w3.org/2000/svg" ${size}>${this.parts.join("")}</svg>\n`;
  }

  save() {
    this.stack.push([this.groups, this.globalAlpha, this.lineDash]);
    this.groups = 0;
  }

  restore() {
    this.parts.push("</g>".repeat(this.groups));
    [this.groups, this.globalAlpha, this.lineDash] = this.stack.pop();
  }

  clip() {
    const id = `clip${(this.clips += 1)}`;
    this.parts.push(`<clipPath id="${id}"><path d="${this.path.join("")}"/></clipPath><g clip-path="url(#${id})">`);
    this.groups += 1;
  }

  beginPath() {
    this.path = [];
  }

  closePath() {
    this.path.push("Z");
  }

  moveTo(x, y) {
    this.path.push(`M${round(x)} ${round(y)}`);
  }

  lineTo(x, y) {
    this.path.push(`L${round(x)} ${round(y)}`);
  }

  bezierCurveTo(...points) {
    this.path.push(`C${points.map(round).join(" ")}`);
  }

  // Only whole circles.
  arc(x, y, r) {
    const [left, right, radius] = [round(x - r), round(x + r), round(r)];
    this.path.push(`A${radius} ${radius} 0 1 1 ${left} ${round(y)}A${radius} ${radius} 0 1 1 ${right} ${round(y)}`);
  }

  rect(x, y, width, height) {
    this.path.push(`M${round(x)} ${round(y)}h${round(width)}v${round(height)}h${round(-width)}Z`);
  }

  fillRect(x, y, width, height) {
    this.beginPath();
    this.rect(x, y, width, height);
    this.fill();
  }

  setLineDash(dash) {
    this.lineDash = dash;
  }

  fill() {
    this.parts.push(`<path d="${this.path.join("")}" fill="${this.fillStyle}"${this.alpha()}/>`);
  }

  stroke() {
    const dash = this.lineDash.length ? ` stroke-dasharray="${this.lineDash.join(" ")}"` : "";
    const style = `fill="none" stroke="${this.strokeStyle}" stroke-width="${this.lineWidth}"${dash}${this.alpha()}`;
    this.parts.push(`<path d="${this.path.join("")}" ${style}/>`);
  }

  fillText(text, x, y) {
    this.write(text, x, y, `fill="${this.fillStyle}"`);
  }

  strokeText(text, x, y) {
    this.write(text, x, y, `fill="none" stroke="${this.strokeStyle}" stroke-width="${this.lineWidth}" stroke-linejoin="${this.lineJoin}"`);
  }

  write(text, x, y, colours) {
    const anchor = { left: "start", center: "middle", right: "end" }[this.textAlign];
    const baseline = { middle: "central", top: "hanging", alphabetic: "auto" }[this.textBaseline];
    const [, size, family] = /(\d+)px (.+)/.exec(this.font);
    const style = `font-size="${size}" font-family="${escape(family)}" text-anchor="${anchor}" dominant-baseline="${baseline}"`;
    this.parts.push(`<text x="${round(x)}" y="${round(y)}" ${style} ${colours}${this.alpha()}>${escape(text)}</text>`);
  }

  alpha() {
    return this.globalAlpha < 1 ? ` opacity="${this.globalAlpha}"` : "";
  }
}

function round(number) {
  return Math.round(number * 10) / 10;
}

const UNREADABLE = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufffe\uffff]/g;

// Text in XML: without what XML forbids, and without what turns the direction of what follows.
function escape(text) {
  const harmless = String(text).replace(UNREADABLE, "\ufffd").toWellFormed?.() ?? String(text).replace(UNREADABLE, "\ufffd");
  return harmless.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
