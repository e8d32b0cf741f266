// A run as a whole: what `evogit report` says, drawn. Every figure comes from the server; bars are shares of the largest.

import { canvasOf, curves } from "./curve.js";
import { button, el, facts, firstLine, grid, titleOf, visible } from "./dom.js";
import { amount, change, clock, count, dollars, margin, number, percent, whole } from "./format.js";

const ROWS = 12;

// `report`: the server's; `on`: {select(commit), act(kind)}; `acting`: whether decisions can be made.
export function runPage(run, report, decisions, theme, on, acting) {
  const parts = [
    head(run, report, on, acting),
    remarks(report),
    el("div", { class: "cards" }, best(run, report, on), budget(run, report), doing(run)),
    card("Best so far", curve(run, report, theme), "wide"),
    card("How the best came to be", steps(run, report, on), "wide"),
    ...["agents", "operators", "models"].map((kind) => contributions(run, kind, report.contributions[kind] ?? [])),
    hosts(run, report),
    ideas(run, report),
    crossings(run, report),
    failures(report),
    choices(report),
    asked(report),
    decided(decisions, on, acting),
  ];
  return el("div", { class: "report" }, parts);
}

function card(title, content, kind = "") {
  const reached = kind === "wide" ? { tabindex: "0", "aria-label": title } : {}; // by keyboard, where it is too wide for a screen
  return content ? el("section", { class: `card ${kind}`, ...reached }, el("h3", {}, title), content) : null;
}

function head(run, report, on, acting) {
  const state = run.alive ? "running" : report.ended || "not finished";
  const when = new Date(report.spent.began * 1000).toLocaleString();
  const words = [`task ${firstLine(report.task ?? "")}`, `begun ${when}`, `last entry ${clock(report.spent.seconds)} later`, state];
  const acts = acting ? [button("Guide agents …", () => on.act("guide")), run.alive ? button("Stop …", () => on.act("stop")) : null] : [];
  return el("div", { class: "headline" }, el("h2", {}, visible(report.run)), el("p", {}, words.join(" · ")), el("p", { class: report.stopped_because === "error" ? "error" : "" }, firstLine(report.stopped_detail ?? "")), el("div", { class: "buttons" }, acts));
}

function remarks(report) {
  if (!report.remarks.length) return null;
  return el("ul", { class: "remarks", "aria-label": "Before you trust the best" }, report.remarks.map((each) => el("li", {}, visible(each))));
}

function best(run, report, on) {
  const { best: found, seed } = report;
  if (!found) return card("Best", el("p", { class: "empty" }, "Nothing is evaluated yet."));
  const name = run.about.metric.name;
  const value = (point, holdout) => told(run, holdout ? point?.holdout : point?.metrics, holdout ? point?.holdout_interval : point?.interval, name);
  return card(
    "Best",
    el(
      "div",
      {},
      el("p", { class: "large" }, value(found), " ", el("span", { class: "quiet" }, firstLine(name))),
      facts([
        ["candidate", button(found.commit.slice(0, 7), () => on.select(found.commit), { class: "link" })],
        ["seed", value(seed)],
        [`on ${run.about.split}`, grown(run, report.gains?.[run.about.split])],
        ["on holdout", found.holdout ? [`${value(found, true)}, the seed ${value(seed, true)}`, grown(run, report.gains?.holdout)].filter(Boolean).join(": ") : "not evaluated there"],
        ["gap closed", report.gap_closed === null ? "" : `${percent(report.gap_closed)} of the way to the ${run.about.metric.bound ? "bound" : "best known"} ${run.about.metric.best_known}, ${Number(Math.abs(report.gap).toPrecision(2))} ${report.gap >= 0 ? "short of" : "beyond"} it`],
        ["change", report.changes.map((each) => el("div", {}, `${visible(each.path)} +${each.added} −${each.removed}`))],
        ["ties", report.tied.length ? count(report.tied.length, "candidate") : ""],
      ]),
    ),
  );
}

// What was gained over the seed, on one split; `told` is the server's.
function grown(run, told) {
  if (!told?.verdict) return "";
  return told.verdict === "tied" ? "tied with the seed" : `${told.verdict}, ${change(told.gain, run.about.places)} over the seed${told.side_by_side ? "" : ", not measured side by side"}`;
}

function told(run, metrics, interval, name) {
  if (!metrics || metrics[name] === undefined) return "-";
  const half = interval ? (interval[1] - interval[0]) / 2 : 0;
  return number(metrics[name], run.about.places) + margin(half, run.about.places);
}

function budget(run, report) {
  const uses = report.uses ?? [];
  const spent = report.spending;
  const done = [count(report.evaluated, "evaluation"), `${whole(report.failed)} failed`, report.repeated ? count(report.repeated, "repeat") : "", report.duplicates ? count(report.duplicates, "duplicate") : ""];
  return card(
    "Budget",
    el(
      "div",
      {},
      uses.map((use) => meter(use.share, `${use.what === "dollars" ? dollars(use.used) : whole(use.used)} of ${amount(use.what, use.most)}`)),
      facts([
        ["done", done.filter(Boolean).join(", ")],
        ["proposals", whole(report.proposals)],
        ["time", clock(report.spent.seconds)],
        ["evaluating", `${clock(report.spent.judging)} in all`],
        ["models", spent.calls || spent.in_flight.calls ? "" : "none was asked: no tokens, no money"],
        ["calls failed", spent.calls ? whole(spent.failed) : ""],
        ["answered", cost(spent, spent.answered)],
        ["in flight", cost(spent, spent.in_flight, " at most")],
        ["may be billed", cost(spent, spent.at_most, " at most: no reply came")],
        ["before the fork", cost(spent, spent.inherited)],
        ["forecast", forecast(report.forecast)],
      ]),
    ),
  );
}

// Calls of one kind and what they cost, as `evogit status` has it; empty if there are none.
function cost(spent, calls, most = "") {
  if (!calls.calls) return "";
  const paid = spent.calls && spent.unpriced === spent.calls ? "no price known" : `${dollars(calls.dollars)}${most}`;
  return `${count(calls.calls, "call")}, ${whole(calls.tokens)} tokens, ${paid}`;
}

// As the second line of `evogit watch` has it.
function forecast(told) {
  if (!told) return "";
  const cost = told.dollars === null ? "" : `, ${dollars(told.dollars)} by then`;
  const when = told.seconds >= 1 ? `ends in ${clock(told.seconds)}` : "about to end";
  return `${when} (${told.limit}${cost})`;
}

function meter(share, text) {
  const filled = el("span", { class: "filled" });
  filled.style.width = `${Math.min(Math.max(share, 0), 1) * 100}%`;
  return el("div", { class: "meter", role: "img", "aria-label": text }, el("span", { class: "track" }, filled), el("span", {}, text));
}

function doing(run) {
  const agents = Object.entries(run.agents);
  if (!agents.length || !run.alive) return null;
  return card("Now", facts(agents.map(([name, what]) => [firstLine(name), firstLine(what)])));
}

function hosts(run, report) {
  if (report.hosts.length < 2) return null;
  const rows = report.hosts.map((each) => [
    firstLine(each.host) + (each.here ? " (here)" : ""),
    ...[each.agents.length, each.candidates, each.evaluated, each.records].map(whole),
    number(each.best?.value ?? null, run.about.places),
    each.last === null ? "" : new Date(each.last * 1000).toLocaleString(),
  ]);
  return card("Hosts", grid(["host", "agents", "candidates", "evaluated", "records", "best", "last entry, by its clock"], rows, "lrrrrrl"), "wide");
}

function curve(run, report, theme) {
  const points = run.course.map(([index, evaluations]) => [evaluations, run.value[index], ...around(run, index)]);
  if (!points.length) return null;
  points.push([Math.max(report.evaluated, points.at(-1)[0]), ...points.at(-1).slice(1)]);
  const told = { lines: [{ name: run.about.run, points }], unit: "evaluations", places: run.about.places, falling: !run.higherIsBetter };
  return canvasOf((width, height) => curves(told, theme(), width, height), 220, "Best so far against evaluations");
}

function around(run, index) {
  const half = run.margin[index];
  return half && Number.isFinite(half) ? [run.value[index] - half, run.value[index] + half] : [null, null];
}

function steps(run, report, on) {
  const told = [...report.steps].filter((each) => each.gain !== null && each.gain !== undefined);
  if (!told.length) return null;
  const most = Math.max(...told.map((each) => Math.abs(each.gain)));
  const largest = [...told].sort((a, b) => b.gain - a.gain).slice(0, ROWS);
  const rows = largest.map((each) => [
    bar(each.gain / most),
    each.verdict === "tied" ? each.verdict : (each.side_by_side ? "" : "~") + change(each.gain, run.about.places) + (each.verdict === "within noise" ? ` ${each.verdict}` : ""),
    button(each.commit.slice(0, 7), () => on.select(each.commit), { class: "link" }),
    firstLine(each.agent),
    visible(each.operator),
    el("span", {}, titleOf(each.title)),
  ]);
  const hidden = told.length - largest.length;
  return el("div", {}, grid(["", "gain", "candidate", "agent", "operator", "title"], rows, "lrllll"), hidden > 0 ? el("p", { class: "quiet" }, `The largest of ${told.length} steps.`) : null);
}

function bar(share) {
  const drawn = el("span", { class: share < 0 ? "bar minus" : "bar" });
  drawn.style.width = `${Math.max(Math.abs(share) * 90, 1)}px`;
  return drawn;
}

function contributions(run, kind, rows) {
  if (!rows.length) return null;
  const most = Math.max(...rows.map((each) => Math.abs(each.gained)), 1e-300);
  const paid = rows.some((each) => each.calls);
  const heads = [kind.replace(/s$/, ""), "", "gained", "proposals", "valid", "better", "records", ...(paid ? ["tokens", "spent"] : [])];
  const inOrder = kind === "agents" ? rows : [...rows].sort((a, b) => b.gained - a.gained);
  const table = inOrder.slice(0, ROWS).map((each) => [
    firstLine(each.name || "none") + (each.kind ? ` (${firstLine(each.kind)})` : ""),
    bar(each.gained / most),
    number(each.gained, run.about.places),
    ...[each.proposals, each.valid, each.improved, each.records].map(whole),
    ...(paid ? [whole(each.tokens), dollars(each.dollars)] : []),
  ]);
  const shared = kind === "operators" ? " One that was made by several operators counts for each of them, so these are more than the proposals." : "";
  const meant = el("p", { class: "quiet" }, `Gained: on the way to the best.${shared}`);
  return card(kind[0].toUpperCase() + kind.slice(1), el("div", {}, grid(heads, table, "llrrrrrrr"), meant), "wide");
}

function ideas(run, report) {
  if (!report.tried.length) return null;
  const best = [...report.tried].sort((a, b) => (b.gain ?? -Infinity) - (a.gain ?? -Infinity));
  const rows = best.map((each) => [visible(each.family) || "-", each.gain === null ? "-" : change(each.gain, run.about.places), whole(each.tries), firstLine(each.outcome), firstLine(each.title)]);
  const hint = el("p", { class: "quiet" }, "Type family: and a key into the filter of the graph or the table to see the candidates of one family.");
  return card("Ideas of models", el("div", {}, grid(["family", "gain", "tries", "outcome", "idea"], rows, "lrrll"), hint), "wide");
}

function crossings(run, report) {
  const rows = report.crossings.strategies;
  if (!rows.length) return null;
  const numbers = (each) => [each.made, each.clean, each.valid, each.better].map(whole);
  const table = rows.map((each) => [`${visible(each.operator)} (${visible(each.strategy)})`, ...numbers(each), change(each.gain, run.about.places)]);
  return card("Merges", grid(["way", "made", "clean", "valid", "better", "mean gain"], table, "lrrrrr"), "wide");
}

function failures(report) {
  const rows = [
    ...report.failures.candidates.map((each) => ["candidate", each.count, each.reason]),
    ...report.failures.proposals.map((each) => ["proposal", each.count, each.reason]),
  ];
  if (!rows.length) return null;
  const most = Math.max(...rows.map(([, amount]) => amount));
  const listed = report.failures.candidates.reduce((sum, each) => sum + each.count, 0);
  const rest = report.failed > listed ? el("p", { class: "quiet" }, `${count(report.failed - listed, "more candidate")} failed, for other reasons.`) : null;
  return card("Why they fail", el("div", {}, grid(["", "times", "what", "reason"], rows.map(([what, times, reason]) => [bar(times / most), whole(times), what, firstLine(reason)]), "lrll"), rest), "wide");
}

function choices(report) {
  const rows = report.choices ?? [];
  if (!rows.length) return null;
  const names = Object.keys(rows[0]).filter((name) => typeof rows[0][name] !== "object");
  return card("Choices", grid(names, rows.map((each) => names.map((name) => visible(String(each[name] ?? "")))), "l".repeat(names.length)), "wide");
}

function asked(report) {
  const { asked: told } = report;
  return card(
    "Asked",
    el(
      "div",
      {},
      facts([
        ["agents", visible(told.agents.join(", "))],
        ["editable", visible(told.editable.join(", "))],
        ["selector", told.selector],
        [told.imported ? "imported from" : "sandbox", told.provider],
        ["guidance", told.guidance.map((each) => el("div", {}, visible(each)))],
        ["tactics", told.tactics.map((each) => el("div", {}, `${firstLine(each.agent)}: ${visible(each.text)}`))],
      ]),
      told.goal ? el("details", {}, el("summary", {}, "goal"), el("pre", {}, visible(told.goal))) : null,
    ),
    "wide",
  );
}

function decided(decisions, on, acting) {
  const rows = decisions.decisions ?? [];
  if (!rows.length) return null;
  const undo = (each) => (acting && each.in_force && each.kind !== "stop" ? button("Undo", () => on.act("undo", each.decision), { class: "link" }) : each.in_force ? "" : "undone");
  const what = (each) => [each.kind, ...(each.candidates ?? []).map((commit) => commit.slice(0, 7)), each.subtree ? "and all below" : "", each.carriers ? "and all that carry its code" : ""].join(" ");
  const cells = (each) => [new Date(each.time * 1000).toLocaleString(), firstLine(each.by), what(each), firstLine(each.reason), undo(each)];
  return card("Decisions", grid(["when", "by", "decision", "why", ""], rows.map(cells), "lllll"), "wide");
}
