// All candidates that are chosen, as rows; only those in view exist as elements.

import { el, firstLine } from "./dom.js";
import { age, margin, number } from "./format.js";

const ROW = 24; // pixels
const SPARE = 6; // rows above and below the view

export const GLYPHS = { best: "★", seed: "◆", scored: "●", failed: "○", waiting: "·", promoted: "✚", pruned: "✂" };

const NEWEST = "candidate"; // by what is sorted unless a person says otherwise, and what an address need not tell
const UPWARDS = "-up";

export const MARKS = { mutation: "●", merge: "■", graft: "▲", human: "⬟" };

const COLUMNS = [
  { name: "", width: "1.6em", cell: glyph },
  { name: "candidate", width: "5.2em", cell: (run, index) => run.short(index), by: (run, index) => index },
  { name: "score", width: "minmax(6em, 9em)", right: true, cell: scoreText, by: (run, index) => worst(run, run.value[index]) },
  { name: "gain", width: "minmax(6em, 14em)", right: true, cell: (run, index) => run.gainText(index), by: (run, index) => worst(run, run.gain(index), 1) },
  { name: "age", width: "3.4em", right: true, cell: (run, index) => age(run.now - run.time[index]), by: (run, index) => index },
  { name: "agent", width: "5em", cell: (run, index) => firstLine(run.agentName(index)), by: (run, index) => run.agentName(index) },
  { name: "operator", width: "6em", cell: (run, index) => run.operatorName(index), by: (run, index) => run.operatorName(index) },
  { name: "title", width: "minmax(10em, 1fr)", cell: (run, index, titles) => firstLine(titles.title(index) ?? "…") },
];

// The mark that a candidate has in the graph.
export function glyph(run, index) {
  const kind = run.kind(index);
  return (kind === "scored" && MARKS[run.operatorName(index)]) || GLYPHS[kind];
}

export function scoreText(run, index) {
  if (!Number.isNaN(run.value[index])) return number(run.value[index], run.about.places) + margin(run.margin[index], run.about.places);
  const status = run.statusName(index);
  return status === "waiting" || status === "evaluator-error" ? "…" : status.replace("not-measured", "not measured");
}

function worst(run, value, sign = run.higherIsBetter ? 1 : -1) {
  return Number.isNaN(value) ? -Infinity : sign * value;
}

export class Table {
  // `on`: {select(index), sort(order)}.
  constructor(parent, titles, on) {
    Object.assign(this, { titles, on });
    this.arrange("");
    this.heads = COLUMNS.map((column, k) => this.head(column, k));
    this.header = el("div", { role: "row", class: "row heads" }, this.heads);
    this.body = el("div", { role: "presentation", class: "rows" });
    this.scroller = el("div", { role: "rowgroup", class: "scroller", tabindex: "0", "aria-label": "Candidates", onscroll: () => this.draw() }, this.body);
    this.scroller.addEventListener("keydown", (event) => this.key(event));
    this.element = el("div", { role: "table", class: "table", "aria-label": "Candidates" }, el("div", { role: "rowgroup" }, this.header), this.scroller);
    this.element.style.setProperty("--columns", COLUMNS.map(({ width }) => width).join(" "));
    parent.replaceChildren(this.element);
    new ResizeObserver(() => this.draw()).observe(this.scroller);
    this.selected = null;
  }

  head(column, k) {
    if (!column.by) return el("span", { role: "columnheader" }, column.name);
    const sort = () => this.sort(k);
    const attributes = { type: "button", class: "sort", onclick: sort };
    return el("span", { role: "columnheader", class: column.right ? "right" : null }, el("button", attributes, column.name));
  }

  // An order as the address has it: a column's name, with `-up` from the least on; the newest first is empty.
  arrange(order) {
    const name = order.endsWith(UPWARDS) ? order.slice(0, -UPWARDS.length) : order;
    const column = COLUMNS.findIndex((each) => each.by && each.name === name);
    this.sorted = { column: Math.max(column, 1), down: !order.endsWith(UPWARDS) };
  }

  sort(column) {
    const { name } = COLUMNS[column];
    const down = this.sorted.column !== column || !this.sorted.down;
    this.scroller.scrollTop = 0;
    this.on.sort(name === NEWEST && down ? "" : name + (down ? "" : UPWARDS));
  }

  // Show these candidates of a run; the sorting and the place in the list stay.
  show(run, indices) {
    this.run = run;
    this.indices = indices;
    const { column, down } = this.sorted;
    const key = COLUMNS[column].by;
    const sign = down ? -1 : 1;
    const keys = new Map();
    this.order = [...indices];
    if (key(run, 0) !== 0 || column !== 1) for (const index of this.order) keys.set(index, key(run, index));
    const compare = keys.size ? (a, b) => (keys.get(a) < keys.get(b) ? -sign : keys.get(a) > keys.get(b) ? sign : b - a) : (a, b) => sign * (a - b);
    this.order.sort(compare);
    this.heads.forEach((head, k) => COLUMNS[k].by && head.setAttribute("aria-sort", k === column ? (down ? "descending" : "ascending") : "none"));
    this.element.setAttribute("aria-rowcount", this.order.length + 1);
    this.body.style.height = `${this.order.length * ROW}px`;
    this.draw();
  }

  draw() {
    if (!this.order) return;
    const first = Math.max(Math.floor(this.scroller.scrollTop / ROW) - SPARE, 0);
    const last = Math.min(first + Math.ceil(this.scroller.clientHeight / ROW) + 2 * SPARE, this.order.length);
    const rows = [];
    for (let place = first; place < last; place += 1) rows.push(this.row(place));
    this.body.replaceChildren(...rows);
  }

  row(place) {
    const { run, titles } = this;
    const index = this.order[place];
    const cells = COLUMNS.map((column) => el("span", { role: "cell", class: column.right ? "right" : null }, column.cell(run, index, titles)));
    if (run.better(index)) cells[3].classList.add("better");
    const attributes = {
      role: "row",
      class: `row ${run.kind(index)}${run.failed(index) ? " failed" : ""}`,
      "aria-rowindex": place + 2,
      "aria-selected": index === this.selected ? "true" : null,
      onclick: () => this.on.select(index),
    };
    const row = el("div", attributes, cells);
    row.style.transform = `translateY(${place * ROW}px)`;
    return row;
  }

  select(index) {
    this.selected = index;
    const place = this.order?.indexOf(index) ?? -1;
    const { scrollTop, clientHeight } = this.scroller;
    if (place >= 0 && (place * ROW < scrollTop || (place + 1) * ROW > scrollTop + clientHeight))
      this.scroller.scrollTop = Math.max(place - Math.floor(clientHeight / ROW / 2), 0) * ROW;
    this.draw();
  }

  // The candidate `step` rows below the selected one.
  next(step) {
    const place = this.order.indexOf(this.selected);
    return this.order[Math.min(Math.max(place < 0 ? 0 : place + step, 0), this.order.length - 1)];
  }

  key(event) {
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20, Home: -Infinity, End: Infinity };
    if (!(event.key in steps) || !this.order.length) return;
    event.preventDefault();
    const step = steps[event.key];
    this.on.select(Number.isFinite(step) ? this.next(step) : this.order.at(step > 0 ? -1 : 0));
  }
}
