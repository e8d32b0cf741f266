// A difference between two candidates as elements: files, hunks, lines with their numbers.

import { el, visible } from "./dom.js";
import { highlight } from "./highlight.js";

const MOST = 4000; // lines that are drawn at once

export function diffView({ files }) {
  if (!files.length) return el("p", { class: "empty" }, "No file differs.");
  const room = { left: MOST };
  return el(
    "div",
    { class: "diff" },
    files.map((file) => fileView(file, room)),
    room.left <= 0 ? el("p", { class: "note" }, "Shortened: ", el("code", {}, "evogit diff"), " prints all of it.") : null,
  );
}

function fileView(file, room) {
  const [added, removed] = ["+", "-"].map((sign) => file.hunks.reduce((sum, { lines }) => sum + lines.filter(([each]) => each === sign).length, 0));
  const head = [visible(file.path), el("span", { class: "added" }, ` +${added}`), el("span", { class: "removed" }, ` −${removed}`)];
  if (file.note) head.push(el("span", { class: "quiet" }, `  ${file.note}`));
  if (file.status !== "modified") head.push(el("span", { class: "quiet" }, `  ${file.status}`));
  return el("details", { open: true, class: "file" }, el("summary", {}, head), el("div", { class: "code" }, file.hunks.map((hunk) => hunkView(hunk, file.path, room))));
}

function hunkView({ header, lines }, path, room) {
  let [old, fresh] = (/-(\d+)(?:,\d+)? \+(\d+)/.exec(header) ?? [0, 1, 1]).slice(1).map(Number);
  const rows = [el("div", { class: "hunk" }, visible(header))];
  for (const [sign, text] of lines) {
    if ((room.left -= 1) < 0) break;
    const numbers = [sign === "+" ? "" : old, sign === "-" ? "" : fresh];
    old += sign === "+" ? 0 : 1;
    fresh += sign === "-" ? 0 : 1;
    rows.push(lineView(sign, visible(text), path, numbers));
  }
  return el("div", {}, rows);
}

function lineView(sign, text, path, [old, fresh]) {
  const kind = { "+": "plus", "-": "minus" }[sign] ?? "same";
  const parts = highlight(text, path).map(([name, part]) => (name ? el("span", { class: name }, part) : part));
  const numbers = [old, fresh].map((each) => el("span", { class: "line", "aria-hidden": "true" }, String(each)));
  return el("div", { class: `text ${kind}` }, numbers, el("span", { class: "sign" }, sign), el("span", { class: "words" }, parts));
}
