// The page: puts the parts together, and keeps them in step with the address and with the run.

import { Actions } from "./act.js";
import { Details, TABS } from "./details.js";
import { button, byId, el, fill, firstLine, titleOf, visible } from "./dom.js";
import { FilterError, chosen, parse } from "./filter.js";
import { count, number, whole } from "./format.js";
import { Keys } from "./keys.js";
import { AXES, SCALES } from "./layout.js";
import { Live } from "./live.js";
import { COLOURINGS, THEMES, colouring } from "./palette.js";
import { VIEWS, picture } from "./picture.js";
import { Plot } from "./plot.js";
import { FILELESS, Run } from "./run.js";
import { runPage } from "./run_page.js";
import { saveFigure } from "./save.js";
import { MOST_COUNTED } from "./scene.js";
import { openSource } from "./source.js";
import { State } from "./state.js";
import { GLYPHS, MARKS, Table, scoreText } from "./table.js";
import { Titles } from "./titles.js";

const PAGES = { graph: "Graph", run: "Run" };

const STEPS = { ArrowLeft: [80, 0], ArrowRight: [-80, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] }; // pixels

const SPARING = 1000; // milliseconds between two refreshes of what is dear to make anew

class Page {
  constructor(source, listed) {
    this.source = source;
    this.listed = listed;
    this.state = new State((state) => this.changed(state));
    this.opened = new Set(); // candidates whose dead ends are unfolded
    this.found = null; // what the server found for the filter's words
    this.dark = matchMedia("(prefers-color-scheme: dark)");
    this.dark.addEventListener("change", () => this.refresh());
    this.plot = new Plot(byId("canvas"), byId("minimap"), {
      select: (index) => this.select(index),
      hover: (index, x, y, folded) => this.tip(index, x, y, folded),
      open: (index) => this.unfold(index),
    });
    this.keys = new Keys(this.commands());
    this.furnish();
  }

  async open(name) {
    this.wanted = name;
    const told = await this.source.run(name);
    if (name !== this.wanted) return; // another one was chosen meanwhile
    this.live?.close();
    if (name !== this.source.name) document.querySelector("dialog[open]")?.close(); // it is about another run
    this.source.name = name;
    this.run = new Run(told);
    this.acting = this.source.live && !this.run.about.read_only;
    this.titles = new Titles(this.source, () => this.titled());
    this.table = new Table(byId("table"), this.titles, { select: (index) => this.select(index), sort: (sort) => this.state.set({ sort }) });
    const on = {
      select: (index) => this.select(index),
      tab: (tab, focus) => this.turn(tab, focus),
      base: (base) => this.state.set({ base }),
      pin: (index) => this.state.set({ pin: index === null ? "" : this.run.ids[index] }),
      act: (kind, index) => this.act(kind, index),
    };
    this.details = new Details(byId("details"), this.source, this.titles, on, this.acting);
    this.actions = new Actions(this.source, byId("toasts"), () => this.decided());
    this.opened.clear();
    this.plot.picture = null;
    this.follow();
    await this.look();
  }

  follow() {
    if (!this.source.live) return;
    this.live = new Live(this.source, this.run.about.run, this.run.position, {
      onDelta: (delta) => this.take(delta),
      onReload: () => this.open(this.run.about.run).catch((error) => this.complain(error.message)),
      onState: (state) => this.connected(state),
    });
  }

  // --- what is shown ------------------------------------------------------------------------------------------------

  get theme() {
    const wanted = document.documentElement.dataset.theme ?? (this.dark.matches ? "dark" : "light");
    return THEMES[wanted];
  }

  get colour() {
    return Object.hasOwn(COLOURINGS, this.state.colour) ? this.state.colour : "agent";
  }

  get selected() {
    return this.indexOf(this.state.select);
  }

  get pinned() {
    return this.indexOf(this.state.pin);
  }

  indexOf(revision) {
    if (!this.run || !revision) return null;
    if (revision === "best") return this.run.best;
    if (revision === "seed") return this.run.seed;
    const index = this.run.find(revision);
    return index < 0 ? null : index;
  }

  // The address changed.
  async changed(state) {
    if (!this.run) return;
    try {
      if (state.run && state.run !== this.run.about.run) await this.open(state.run);
      else await this.look();
    } catch (error) {
      this.complain(error.message);
    }
  }

  // Show what the address asks for.
  async look() {
    const { state } = this;
    for (const page of document.querySelectorAll("#pages a")) page.setAttribute("aria-current", page.dataset.page === state.page ? "page" : "false");
    byId("graph").hidden = byId("details").hidden = state.page !== "graph";
    byId("page").hidden = state.page === "graph";
    byId("filter").value = state.filter;
    this.bar();
    await this.sift();
    this.refresh();
    await (state.page === "graph" ? this.detail() : this.pages());
  }

  // Find out what the filter holds.
  async sift() {
    this.filter = null;
    this.complain(this.run.amount ? "" : "No candidate yet: the first one is the seed.", true);
    if (!this.state.filter.trim()) return;
    try {
      const filter = parse(this.state.filter);
      const asked = filter.text || filter.file;
      this.found = asked ? new Set((await this.source.search(filter.text, filter.file)).found) : null;
      const held = chosen(this.run, filter, this.found);
      this.filter = filter;
      if (!held.size) this.complain("No candidate fits this filter.", true);
    } catch (error) {
      this.complain(error.message);
      if (!(error instanceof FilterError)) this.filter = null;
    }
  }

  // `calm`: nothing is wrong, there is only nothing to be seen.
  complain(text, calm = false) {
    const [input, hint] = [byId("filter"), byId("hint")];
    input.setAttribute("aria-invalid", text && !calm ? "true" : "false");
    input.title = visible(text);
    fill(hint, text);
    hint.hidden = !text;
    hint.classList.toggle("calm", calm);
  }

  // Draw graph and table anew, from what is known.
  refresh() {
    if (!this.run) return;
    const { run, state } = this;
    if (state.colour === "file") this.titles.tell(run);
    const held = this.filter ? chosen(run, this.filter, this.found) : null;
    const root = this.selected ?? run.best ?? run.seed;
    const view = VIEWS.includes(state.view) && (state.view !== "clade" || root !== null) ? state.view : "skeleton";
    const axis = Object.hasOwn(AXES, state.x) ? state.x : "time";
    const scale = Object.hasOwn(SCALES, state.y) ? state.y : "score";
    this.picture = picture(run, { view, axis, scale, chosen: held, open: this.opened, root: this.root ?? root, everything: state.all === "1", deadEnds: state.dead === "1" });
    const colours = colouring(run, this.colour, this.theme);
    this.plot.show(this.picture, { theme: this.theme, colours, merges: state.merges === "1" });
    this.plot.mark({ selected: this.selected, pinned: this.pinned });
    this.legend(colours.legend, held);
    const all = held ?? this.picture.shown;
    this.table.arrange(state.sort);
    this.table.show(run, this.filter || state.all === "1" ? all : { [Symbol.iterator]: () => Array(run.amount).keys() });
    this.facts();
    this.drawn = performance.now();
  }

  async detail() {
    const index = this.selected;
    this.plot.mark({ selected: index, pinned: this.pinned });
    this.table.select(index);
    document.body.classList.toggle("selecting", index !== null);
    if (index === null) this.details.empty(this.run.amount ? "Choose a candidate in the graph or in the table; ? lists the keys." : "Nothing is proposed yet.");
    else await this.details.show(this.run, index, { tab: TABS.includes(this.state.tab) ? this.state.tab : "summary", base: this.state.base, pin: this.pinned });
  }

  async pages() {
    const page = byId("page");
    if (this.told !== this.state.page) page.scrollTop = 0;
    this.told = this.state.page;
    if (!page.childElementCount) fill(page, el("p", { class: "empty" }, "…"));
    try {
      fill(page, await this.summary());
    } catch (error) {
      fill(page, el("p", { class: "error", role: "alert" }, error.message));
    }
  }

  async summary() {
    const [report, decisions] = await Promise.all([this.source.report(), this.source.decisions()]);
    const select = (commit) => this.state.set({ page: "graph", select: commit.slice(0, 7) });
    return runPage(this.run, report, decisions, () => this.theme, { select, act: (kind, about) => this.act(kind, about) }, this.acting);
  }

  // --- live ---------------------------------------------------------------------------------------------------------

  take(delta) {
    if (!this.run.amount && delta.added?.amount) this.complain("");
    this.run.take(delta);
    this.titles.hear(delta.added?.first, delta.titles ?? []);
    this.titles.grown(this.run.amount);
    this.facts();
    this.anew();
  }

  // Draw all of it soon, but no more often than it can be drawn.
  anew() {
    const wait = Math.max(SPARING * Math.min(this.run.amount / 20000, 3), 60) - (performance.now() - this.drawn);
    this.soon ??= setTimeout(() => this.renew(), Math.max(wait, 0));
  }

  renew() {
    this.soon = null;
    this.refresh();
    if (this.state.page === "graph" && this.details.index !== this.selected) this.detail(); // the best is another one
    else this.details.refresh();
    if (this.state.page === "run" && !this.asking) {
      this.asking = setTimeout(() => {
        this.asking = null;
        if (this.state.page === "run" && !document.querySelector("dialog[open]")) this.pages();
      }, 2000);
    }
  }

  connected(state) {
    this.connection = state;
    document.body.classList.toggle("lost", state === "lost");
    this.facts();
  }

  titled() {
    this.table.draw();
    this.details.refresh();
    if (this.state.colour === "file") this.anew();
  }

  decided() {
    if (this.state.page !== "graph") this.pages();
    else this.detail();
  }

  // --- what a person does -------------------------------------------------------------------------------------------

  select(index) {
    if (index === null || index === undefined) return;
    this.root = null;
    this.state.set({ page: "graph", select: this.run.ids[index] });
    this.plot.reveal(index);
    const stacked = byId("details").offsetTop >= byId("graph").offsetTop + byId("graph").offsetHeight;
    if (stacked) byId("details").scrollIntoView({ behavior: "smooth" });
  }

  // Select the only candidate that a filter holds.
  async pick(filter) {
    this.state.set({ filter });
    await this.sift();
    const held = this.filter ? [...chosen(this.run, this.filter, this.found)] : [];
    if (held.length === 1) this.select(held[0]);
  }

  turn(tab, focus) {
    this.state.set({ tab });
    if (focus) byId(`tab-${tab}`)?.focus();
  }

  unfold(index) {
    if (this.opened.has(index)) this.opened.delete(index);
    else this.opened.add(index);
    this.refresh();
  }

  act(kind, about) {
    if (!this.acting) return;
    const decision = kind === "undo" ? { kind, decision: about ?? "" } : { kind, index: about ?? this.selected };
    if (["merge", "graft", "judge"].includes(kind)) decision.other = this.pinned;
    this.actions.begin(decision);
  }

  walk(step) {
    this.select(this.table.next(step));
  }

  // To the parent or the first child.
  climb(up) {
    const index = this.selected;
    if (index === null) this.select(this.run.best);
    else this.select(up ? this.run.parents(index)[0] : this.run.children(index)[0]);
  }

  commands() {
    const graph = (what) => (key) => this.state.page === "graph" && what(key);
    const acts = (kind) => () => this.selected !== null && this.act(kind);
    return [
      [["j"], "next row of the table", graph(() => this.walk(1))],
      [["k"], "previous row of the table", graph(() => this.walk(-1))],
      [["h"], "to the parent", graph(() => this.climb(true))],
      [["l"], "to the first child", graph(() => this.climb(false))],
      [["b"], "select the best", () => this.select(this.run.best)],
      [["s"], "select the seed", () => this.select(this.run.seed)],
      [["Enter"], "to the details", graph(() => byId("details").focus())],
      [["d"], "its diff", graph(() => this.turn("diff"))],
      [["1", "2", "3", "4", "5"], "Summary, Diff, Evaluation, Told, Said", graph((key) => this.turn(TABS[key - 1]))],
      [["e"], "unfold or fold the dead ends below it", graph(() => this.selected !== null && this.unfold(this.selected))],
      [["p"], "pin it, to compare others with", graph(() => this.state.set({ pin: this.pinned === this.selected ? "" : this.state.select }))],
      [["P"], "promote it", acts("promote")],
      [["X"], "prune it", acts("prune")],
      [["n"], "say something about it", acts("note")],
      [["G"], "guide all agents", () => this.act("guide")],
      [["u"], "undo the last decision", () => this.act("undo")],
      [["f"], "the whole graph", graph(() => this.plot.fit())],
      [["+", "="], "zoom in", graph(() => this.plot.zoom(1.3))],
      [["-"], "zoom out", graph(() => this.plot.zoom(1 / 1.3))],
      [Object.keys(STEPS), "move the view", graph((key) => this.plot.pan(...STEPS[key]))],
      [["/"], "filter", () => byId("filter").focus()],
      [["v"], "next view: skeleton, lanes, clade", graph(() => this.state.set({ view: VIEWS[(VIEWS.indexOf(this.state.view) + 1) % VIEWS.length] }))],
      [["g"], "the graph", () => this.state.set({ page: "graph" })],
      [["r"], "the run", () => this.state.set({ page: "run" })],
      [[" "], "pause, or go on", () => this.live?.pause(!this.live.paused)],
      [["t"], "light or dark", () => this.shade()],
      [["Escape"], "select nothing", () => this.state.set({ select: "" })],
      [["?"], "this list", () => this.keys.help()],
    ];
  }

  shade() {
    const dark = this.theme === THEMES.dark;
    document.documentElement.dataset.theme = dark ? "light" : "dark";
    this.look();
  }

  // --- head, bar, legend --------------------------------------------------------------------------------------------

  furnish() {
    const go = (page) => (event) => {
      event.preventDefault();
      this.state.set({ page });
    };
    fill(byId("pages"), Object.entries(PAGES).map(([page, name]) => el("a", { href: `#page=${page}`, "data-page": page, onclick: go(page) }, name)));
    const runs = byId("runs");
    fill(runs, this.listed.map(({ run }) => el("option", { value: run }, firstLine(run))));
    runs.addEventListener("change", () => this.state.set({ run: runs.value, select: "", pin: "" }));
    let wait;
    byId("filter").addEventListener("input", (event) => {
      clearTimeout(wait);
      wait = setTimeout(() => this.state.set({ filter: event.target.value }), 150);
    });
    byId("filter").addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      clearTimeout(wait);
      this.pick(event.target.value);
    });
    const pause = button("❚❚", () => this.live?.pause(!this.live.paused), { title: "Space: pause, or go on", "aria-label": "Pause", id: "pause" });
    fill(byId("tools"), this.source.live ? pause : null, button("Save", () => saveFigure(this.plot, this.run, (file) => this.actions.say(`Saved as ${file}.`)), { title: "the view as SVG or PNG" }), button("◐", () => this.shade(), { title: "t: light or dark", "aria-label": "Light or dark" }), button("?", () => this.keys.help(), { title: "keys", "aria-label": "Keys" }));
    this.resizable();
  }

  bar() {
    const { state } = this;
    const group = (name, values, current) =>
      el("span", { class: "group", role: "group", "aria-label": name }, values.map((value) => button(value, () => this.state.set({ [name]: value }), { "aria-pressed": String(value === current) })));
    const choice = (name, label, values) =>
      el("label", {}, `${label} `, el("select", { "aria-label": label ? null : "height", onchange: (event) => this.state.set({ [name]: event.target.value }) }, values.map((value) => el("option", { value, selected: value === state[name] }, value.replace(" to the best", "")))));
    const box = (name, label) =>
      el("label", {}, el("input", { type: "checkbox", checked: state[name] === "1", onchange: (event) => this.state.set({ [name]: event.target.checked ? "1" : "" }) }), ` ${label}`);
    fill(
      byId("bar"),
      group("view", VIEWS, state.view),
      state.view === "skeleton" ? [choice("y", "", Object.keys(SCALES)), choice("x", "against", Object.keys(AXES))] : null,
      choice("colour", "colour", Object.keys(COLOURINGS)),
      box("merges", "merges"),
      state.view === "skeleton" ? box("dead", "dead ends") : null,
      box("all", "all"),
      button("Fit", () => this.plot.fit(), { title: "f" }),
    );
  }

  // What marks and colours mean; a click on one filters by it, or no longer.
  legend(colours, held) {
    const { shown, folded, layout } = this.picture;
    const size = held ? `${count(held.size, "candidate")} of ${whole(this.run.amount)}` : `${whole(shown.size)} of ${count(this.run.amount, "candidate")}`;
    const inOrder = colours.toSorted(([a], [b]) => a.localeCompare(b, undefined, { numeric: true }));
    const more = layout.kind === "scored" && this.run.holdout.size ? ["◇ on the holdout"] : [];
    if (folded.size && shown.size < MOST_COUNTED) more.push("9▸ folded dead ends: click");
    const swatches = inOrder.map(([name, colour]) => this.entry([swatch(colour), firstLine(name)], this.wordOf(name)));
    fill(byId("legend"), el("span", { class: "quiet" }, size), swatches, this.operators(), this.kinds(), more.map((each) => el("span", { class: "quiet" }, each)));
  }

  // The marks that occur in this run.
  operators() {
    return Object.keys(MARKS).filter((name) => this.run.names.operators.includes(name)).map((name) => this.entry([`${MARKS[name]} ${name}`], `operator:${name}`));
  }

  kinds() {
    const { run } = this;
    const occurs = { best: run.best !== null, seed: run.seed !== null, failed: run.status.some((_, index) => run.failed(index)), promoted: run.promoted.size, pruned: run.pruned.size };
    return Object.keys(occurs).filter((kind) => occurs[kind]).map((kind) => this.entry([`${GLYPHS[kind]} ${kind}`], kind === "seed" ? "" : kind));
  }

  // The word of the filter for what has a colour; none where the colour is of several.
  wordOf(name) {
    const known = this.run.names[COLOURINGS[this.colour].names].includes(name) && !(this.colour === "file" && FILELESS.includes(name));
    const unclear = /\s/.test(name) || this.run.names[COLOURINGS[this.colour].names].some((other) => other !== name && other.startsWith(name));
    return known ? `${this.colour}:${unclear ? `"${name}"` : name}` : "";
  }

  entry(content, word) {
    if (!word) return el("span", { class: "entry quiet" }, content);
    const known = this.state.filter.match(/\S*"[^"]*"|\S+/g) ?? [];
    const pressed = known.includes(word);
    const words = pressed ? known.filter((each) => each !== word) : [...known, word];
    return button(content, () => this.state.set({ filter: words.join(" ") }), { class: "entry", "aria-pressed": String(pressed), title: `filter: ${word}` });
  }

  facts() {
    const { run } = this;
    if (!run) return;
    byId("runs").value = run.about.run;
    const state = this.connection === "lost" ? "disconnected" : this.connection === "paused" ? "paused" : !this.source.live ? "a copy" : run.alive ? "live" : "at rest";
    const trying = state === "disconnected" ? ": trying again" : "";
    fill(byId("state"), el("span", { class: `dot ${state.replace(" ", "-")}`, "aria-hidden": "true" }), ` ${state}${trying}`);
    byId("pause")?.setAttribute("aria-pressed", String(state === "paused"));
    const best = run.best === null ? [] : [el("strong", {}, `${GLYPHS.best} ${scoreText(run, run.best)}`), ` ${firstLine(run.about.metric.name)} · `];
    const inside = run.about.judged === "inside" ? " · judged: inside" : "";
    fill(byId("facts"), ...best, `${count(run.amount, "candidate")}${inside}${run.about.read_only ? " · read only" : ""}`);
    document.title = `${run.best === null ? "" : `${number(run.value[run.best], run.about.places)} · `}${visible(run.about.run)} · EvoGit`;
  }

  tip(index, x, y, folded) {
    const tip = byId("tip");
    tip.hidden = index === null;
    if (index === null) return;
    const { run } = this;
    fill(tip, el("strong", {}, `${run.short(index)}  ${scoreText(run, index)}`), folded ? el("div", {}, this.folding(index)) : this.about(index));
    const left = Math.min(x + 14, this.plot.camera.width - tip.offsetWidth - 8);
    tip.style.transform = `translate(${Math.max(left, 0)}px, ${Math.max(y - tip.offsetHeight - 10, 0)}px)`;
  }

  about(index) {
    const { run } = this;
    return [el("div", {}, titleOf(this.titles.title(index) ?? "…")), el("div", { class: "quiet" }, `${firstLine(run.agentName(index))}, ${run.operatorName(index)}`)];
  }

  folding(index) {
    const amount = this.picture.folded.get(index);
    return amount ? `click: show its ${count(amount, "dead end")}` : "click: fold its dead ends";
  }

  resizable() {
    const grip = byId("grip");
    const set = (share) => {
      const percent = Math.min(Math.max(share, 10), 80);
      document.documentElement.style.setProperty("--table", `${percent}%`);
      grip.setAttribute("aria-valuenow", Math.round(percent));
    };
    grip.addEventListener("pointerdown", (event) => grip.setPointerCapture(event.pointerId));
    grip.addEventListener("pointermove", (event) => {
      const { bottom, height } = byId("graph").getBoundingClientRect();
      if (event.buttons) set(((bottom - event.clientY) / height) * 100);
    });
    grip.addEventListener("keydown", (event) => {
      const step = { ArrowUp: 5, ArrowDown: -5 }[event.key];
      if (!step) return;
      event.preventDefault();
      event.stopPropagation();
      set(Number(grip.getAttribute("aria-valuenow")) + step);
    });
  }
}

function swatch(colour) {
  const mark = el("span", { class: "swatch" });
  mark.style.background = colour;
  return mark;
}

async function begin() {
  const hint = byId("hint");
  fill(hint, "Reading the run …");
  hint.hidden = false;
  try {
    const source = await openSource();
    const { runs } = await source.runs();
    if (!runs.length) throw new Error("This repository has no run yet: begin one with `evogit run`.");
    const page = new Page(source, runs);
    const wanted = runs.find(({ run }) => run === page.state.run) ?? runs[0];
    await page.open(wanted.run);
    if (document.readyState !== "complete") await new Promise((loaded) => addEventListener("load", loaded));
    if (!document.documentElement.dataset.again) document.body.dataset.ready = "true"; // else it is loaded anew
  } catch (error) {
    fill(byId("main"), el("p", { class: "error whole", role: "alert" }, error.message));
  }
}

begin();
