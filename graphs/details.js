// One candidate: what it is, what it changed, how it was evaluated, what its agent was told and said.

import { diffView } from "./diff.js";
import { button, el, facts, fill, firstLine, grid, titleOf, visible } from "./dom.js";
import { age, count, margin, number } from "./format.js";
import { half } from "./run.js";
import { glyph, scoreText } from "./table.js";

export const TABS = ["summary", "diff", "evaluation", "told", "said"];

const MOST_LINKS = 12;

export class Details {
  // `on`: {select(index), tab(name), base(name), pin(index), act(kind, index)}; `acting`: whether decisions can be made.
  constructor(parent, source, titles, on, acting) {
    Object.assign(this, { parent, source, titles, on, acting });
    this.shown = 0;
  }

  empty(text) {
    fill(this.parent, el("p", { class: "empty" }, text));
  }

  // Show a candidate; `state`: tab, base of the diff, pinned index.
  async show(run, index, state) {
    const turn = (this.shown += 1);
    this.run = run;
    this.index = index;
    this.state = state;
    const body = el("div", { class: "tab", role: "tabpanel", id: "panel", "aria-labelledby": `tab-${state.tab}`, tabindex: "0" }, el("p", { class: "empty" }, "…"));
    fill(this.parent, this.head(), this.buttons(), this.tabs(), body);
    try {
      const content = await this[state.tab]();
      if (turn === this.shown) fill(body, content);
    } catch (error) {
      if (turn === this.shown) fill(body, el("p", { class: "error", role: "alert" }, error.message));
    }
  }

  // What changes without being asked for while a run goes on.
  refresh() {
    this.parent.querySelector(".title")?.replaceWith(this.head());
    for (const each of this.parent.querySelectorAll("[data-title]")) fill(each, titleOf(this.titles.title(Number(each.dataset.title)) ?? ""));
  }

  head() {
    const { run, index } = this;
    const kind = run.kind(index);
    const title = this.titles.title(index);
    return el(
      "div",
      { class: "title" },
      el("h2", {}, el("span", { class: `glyph ${kind}`, title: kind }, glyph(run, index)), ` ${run.short(index)} `, el("span", { class: "quiet" }, kind === "scored" ? "" : kind)),
      el("p", { class: "subject" }, titleOf(title ?? "…")),
      el("p", { class: "score" }, el("strong", {}, scoreText(run, index)), " ", el("span", { class: run.better(index) ? "better" : "quiet" }, run.gainText(index))),
    );
  }

  buttons() {
    const { run, index, state, on } = this;
    const pinned = state.pin === index;
    const found = [button(pinned ? "Unpin" : "Pin", () => on.pin(pinned ? null : index), { title: "p: compare others with it" })];
    if (this.acting) {
      if (!run.promoted.has(index)) found.push(button("Promote", () => on.act("promote", index), { title: "P: favour it as a parent" }));
      if (index !== run.seed && !run.pruned.has(index)) found.push(button("Prune", () => on.act("prune", index), { title: "X: breed nothing from it" }));
      if (state.pin !== null && !pinned) {
        found.push(button("Merge with pinned", () => on.act("merge", index)));
        found.push(button("Graft onto pinned", () => on.act("graft", index)));
        if (run.about.judged === "pairs") found.push(button("Judge against pinned", () => on.act("judge", index)));
      }
      found.push(button("Note", () => on.act("note", index), { title: "n: say something about it" }));
      if (index !== run.seed) found.push(button("Land …", () => on.act("land", index), { title: "what landing it would do" }));
    }
    return el("div", { class: "buttons" }, found);
  }

  tabs() {
    const turn = (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (step) this.on.tab(TABS[(TABS.indexOf(this.state.tab) + step + TABS.length) % TABS.length], true);
    };
    return el(
      "div",
      { role: "tablist", class: "tabs", onkeydown: turn },
      TABS.map((name) => {
        const chosen = name === this.state.tab;
        const attributes = { role: "tab", id: `tab-${name}`, "aria-selected": String(chosen), "aria-controls": "panel", tabindex: chosen ? "0" : "-1" };
        return button(name[0].toUpperCase() + name.slice(1), () => this.on.tab(name), attributes);
      }),
    );
  }

  link(index) {
    const { run } = this;
    const text = `${glyph(run, index)} ${run.short(index)}`;
    return el("span", { class: "candidate" }, button(text, () => this.on.select(index), { class: "link" }), ` ${scoreText(run, index)} `, el("span", { class: "quiet", "data-title": index }, titleOf(this.titles.title(index) ?? "")));
  }

  links(indices) {
    const more = indices.length - MOST_LINKS;
    return [...indices.slice(0, MOST_LINKS).map((each) => el("div", {}, this.link(each))), more > 0 ? el("div", { class: "quiet" }, `and ${more} more`) : null].filter(Boolean);
  }

  // --- tabs -----------------------------------------------------------------------------------------------------------

  async summary() {
    const { run, index } = this;
    const pin = this.state.pin !== index ? this.state.pin : null;
    const [record, pinned] = await Promise.all([this.source.candidate(index), pin === null ? null : this.source.candidate(pin).catch(() => null)]);
    const edges = run.edges(index);
    const name = { parent: "parent", merge: "merged with", graft: "grafted from", inspiration: "lines of" };
    const by = [index === run.seed ? "" : firstLine(record.agent), record.operator + (record.strategy ? ` (${firstLine(record.strategy)})` : ""), run.modelName(index)].filter(Boolean);
    return el(
      "div",
      {},
      record.reason ? el("pre", { class: "reason" }, visible(record.reason)) : null,
      facts([
        ["status", this.status(record)],
        ["by", `${by.join(", ")}, ${age(run.now - run.time[index])} ago`],
        ...edges.map(([to, kind]) => [name[kind], this.link(to)]),
        ["changed", (record.files ?? []).map((path) => el("div", {}, visible(path)))],
        ["children", this.links(run.children(index))],
        ["decided", (record.decided ?? []).map((each) => el("div", {}, visible(each)))],
        ["id", el("code", {}, record.commit ?? run.ids[index])],
      ]),
      this.metrics(record, pinned),
    );
  }

  status(record) {
    if (!record.status) return "not evaluated yet";
    const cost = record.cost ? [`${record.cost.wall.toFixed(2)} s`, `${record.cost.cpu.toFixed(2)} s CPU`] : [];
    const times = record.repeats ? [`evaluated ${1 + record.repeats} times`] : [];
    const inside = record.judged === "inside" ? ["judged: inside"] : [];
    return [record.status + (record.split ? ` on ${record.split}` : ""), ...times, ...cost, ...inside].join(", ");
  }

  // `pinned`: the record of the candidate to compare with, or null.
  metrics(record, pinned) {
    const rows = record.metric_rows ?? [];
    if (!rows.length) return null;
    const value = (told, places) => (told === null || told === undefined ? "" : number(told, places));
    const other = new Map((pinned?.metric_rows ?? []).map((each) => [each.name, each.value]));
    const cells = (each) => [visible(each.name), value(each.value, each.places) + margin(half(each.margin), each.places), ...[each.parent, each.seed, each.holdout].map((told) => value(told, each.places))];
    return grid(
      ["metric", "value", "parent", "seed", "holdout", ...(pinned ? [`pinned ${this.run.short(this.state.pin)}`] : [])],
      rows.map((each) => [...cells(each), ...(pinned ? [value(other.get(each.name), each.places)] : [])]),
      "lrrrrr",
    );
  }

  async diff() {
    const { run, index, state } = this;
    const bases = this.bases();
    if (!bases.length) return el("p", { class: "empty" }, "The seed comes from nothing.");
    const chosen = bases.find(([name]) => name === (state.base || "pinned")) ?? bases[0];
    const choose = el(
      "select",
      { "aria-label": "Compare with", onchange: (event) => this.on.base(event.target.value) },
      bases.map(([name, to]) => el("option", { value: name, selected: name === chosen[0] }, `${name} ${run.short(to)}`)),
    );
    const told = await this.source.diff(chosen[1], index);
    return el("div", {}, el("label", { class: "against" }, "against ", choose), diffView(told));
  }

  bases() {
    const { run, index, state } = this;
    const bases = run.edges(index).map(([to, kind], k) => [k ? `${kind} ${k}` : "parent", to]);
    if (index !== run.seed && run.seed !== null) bases.push(["seed", run.seed]);
    if (state.pin !== null && state.pin !== index) bases.push(["pinned", state.pin]);
    if (index !== run.best && run.best !== null) bases.push(["best", run.best]);
    return bases;
  }

  async evaluation() {
    const told = await this.source.evaluation(this.index);
    if (!told.status) return el("p", { class: "empty" }, "Not evaluated yet.");
    const cost = told.cost ?? {};
    const used = [`${(cost.wall ?? 0).toFixed(3)} s`, `${(cost.cpu ?? 0).toFixed(3)} s CPU`, cost.memory ? `${Math.round(cost.memory / 1e6)} MB` : ""].filter(Boolean);
    return el(
      "div",
      {},
      told.reason ? el("pre", { class: "reason" }, visible(told.reason)) : null,
      facts([
        ["status", `${told.status} on ${told.split}`],
        ["used", used.join(", ")],
        ["evaluated", told.repeats ? count(1 + told.repeats, "time") : ""],
        ["judged", told.judged],
        ["shared", told.cached ? "known from an equal candidate" : ""],
        ...Object.entries(told.stages ?? {}).map(([stage, values]) => [`stage ${visible(stage)}`, valuesText(values)]),
      ]),
      cases(told.cases ?? {}),
      (told.evidence ?? []).map((each) => text(each, true)),
    );
  }

  async told() {
    const { told } = await this.source.session(this.index);
    return told.length ? told.map((each) => text(each, true)) : el("p", { class: "empty" }, "Its agent asks no model: it was told nothing.");
  }

  async said() {
    const { said, facts: about } = await this.source.session(this.index);
    if (!said.length && !about?.length) return el("p", { class: "empty" }, "Nothing is kept of what its agent said.");
    return [about?.length ? facts(about.map(([name, value]) => [name, visible(value)])) : null, ...said.flatMap((each) => turns(each) ?? text(each, true))];
  }
}

function valuesText(values) {
  return Object.entries(values).map(([name, value]) => `${visible(name)} ${Number(value.toPrecision(6))}`).join(", ");
}

function cases(told) {
  const names = Object.keys(told);
  if (!names.length) return null;
  const metrics = [...new Set(names.flatMap((name) => Object.keys(told[name])))];
  const value = (each) => (each === undefined || each === null ? "" : String(Number(each.toPrecision(6))));
  return grid(["case", ...metrics.map(visible)], names.map((name) => [visible(name), ...metrics.map((metric) => value(told[name][metric]))]), `l${"r".repeat(metrics.length)}`);
}

const TURN = /^# (assistant|user)$/m; // as evogit/agents/coder.py heads what was said

// A coder's session, turn by turn: what the model said, and what its tools answered.
function turns({ name, text: words, cut }) {
  const parts = name.startsWith("transcript") ? words.split(TURN) : [];
  if (parts.length < 3) return null;
  let number = 0;
  const turn = (role, said) => {
    number += role === "assistant" ? 1 : 0;
    const who = role === "assistant" ? `${number} said` : `${number} answered`;
    return el("details", { open: true, class: `evidence turn ${role}` }, el("summary", {}, who), el("pre", {}, visible(said.trim())));
  };
  const found = [];
  for (let k = 1; k < parts.length; k += 2) found.push(turn(parts[k], parts[k + 1]));
  return cut ? [...found, el("p", { class: "quiet" }, "Shortened: ", el("code", {}, "evogit show --file"), " prints all of it.")] : found;
}

function text({ name, text: words, cut }, open) {
  const size = cut ? `${count(words.length, "character")}, shortened` : "";
  return el("details", { open, class: "evidence" }, el("summary", {}, visible(name), el("span", { class: "quiet" }, ` ${size}`)), el("pre", {}, visible(words)));
}
