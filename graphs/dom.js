// Elements from plain values. Text is only ever set as text: what candidates wrote is never read as HTML.

export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export function button(text, onclick, attributes = {}) {
  return el("button", { type: "button", onclick, ...attributes }, text);
}

export function byId(id) {
  return document.getElementById(id);
}

export function fill(element, ...children) {
  element.replaceChildren(...children.flat(2).filter(Boolean));
  return element;
}

const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\u{e0000}-\u{e007f}]/gu;

// Foreign text with what cannot be seen, or turns the direction of what follows, as `\u{202e}`.
export function visible(text) {
  return String(text).replace(UNSEEN, (each) => `\\u{${each.codePointAt(0).toString(16)}}`);
}

export function firstLine(text) {
  return visible(String(text).split("\n", 1)[0]);
}

// Two columns: names and what belongs to them, without what is empty.
export function facts(pairs) {
  const rows = pairs.filter(([, value]) => value !== null && value !== undefined && value !== "" && value.length !== 0);
  return el("dl", { class: "facts" }, rows.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, ...[value].flat())]));
}

// A table of texts; `align` has a letter for each column, as `lrr`.
export function grid(heads, rows, align, caption) {
  const cell = (tag, value, k) => el(tag, { class: align[k] === "r" ? "right" : null, scope: tag === "th" ? "col" : null }, value ?? "");
  return el(
    "table",
    { class: "grid" },
    caption ? el("caption", {}, caption) : null,
    el("thead", {}, el("tr", {}, heads.map((head, k) => cell("th", head, k)))),
    el("tbody", {}, rows.map((row) => el("tr", {}, row.map((value, k) => cell("td", value, k))))),
  );
}
