// Elements from plain values. Text is only ever set as text, and made visible here: what candidates wrote is never read
// as HTML, and hides nothing.

const READ_ALOUD = new Set(["title", "aria-label", "placeholder"]); // attributes that a person reads

export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else element.setAttribute(name, READ_ALOUD.has(name) ? visible(value) : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false).map(harmless));
  return element;
}

function harmless(child) {
  return child instanceof Node ? child : visible(child);
}

export function button(text, onclick, attributes = {}) {
  return el("button", { type: "button", onclick, ...attributes }, text);
}

export function byId(id) {
  return document.getElementById(id);
}

export function fill(element, ...children) {
  element.replaceChildren(...children.flat(2).filter(Boolean).map(harmless));
  return element;
}

// As `is_seen` in evogit/text.py: by category, fillers and selectors by name, tags by number.
const UNSEEN = /[\p{C}\p{Zl}\p{Zp}\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\u{e0000}-\u{e0fff}]/gu;
const JOINING = /[\u200c\u200d\ufe0e\ufe0f]/;

// Foreign text with what cannot be seen, or turns the direction of what follows, as `\u{202e}`.
export function visible(text) {
  return String(text).replace(UNSEEN, (each, at, whole) => {
    if (each === "\n" || each === "\t" || (JOINING.test(each) && joins(each, whole.slice(Math.max(at - 2, 0), at)))) return each;
    return `\\u{${each.codePointAt(0).toString(16)}}`;
  });
}

// Whether a selector or joiner belongs to what it follows: emoji, and scripts whose letters are joined.
function joins(each, preceding) {
  const before = [...preceding].at(-1) ?? "";
  return before > "\xff" && (before.replace(UNSEEN, "") !== "" || (each === "\u200d" && before === "\ufe0f"));
}

export function firstLine(text) {
  return visible(String(text).split("\n", 1)[0]);
}

// A title, in which no arrow is broken between two lines.
export function titleOf(text) {
  return firstLine(text).split(/(->)/).map((part) => (part === "->" ? el("span", { class: "unbroken" }, part) : part));
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
