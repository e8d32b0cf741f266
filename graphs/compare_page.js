// Several runs beside each other: best so far against evaluations, with intervals.

import { canvasOf, curves } from "./curve.js";
import { el, firstLine, grid } from "./dom.js";
import { dollars, margin, number, whole } from "./format.js";

// `told`: {runs: [{run, task, places, direction, points, evaluated, best, margin, dollars}]}; `names`: all there are.
export function comparePage(told, names, chosen, theme, on) {
  const boxes = names.map((name) => {
    const toggle = (event) => on.choose(event.target.checked ? [...chosen, name] : chosen.filter((each) => each !== name));
    return el("label", { class: "option" }, el("input", { type: "checkbox", checked: chosen.includes(name), onchange: toggle }), ` ${firstLine(name)}`);
  });
  const runs = told.runs;
  const tasks = new Set(runs.map(({ task }) => task));
  return el(
    "div",
    { class: "report" },
    el("h2", {}, "Compare runs"),
    el("div", { class: "options" }, boxes),
    tasks.size > 1 ? el("p", { class: "error" }, "These runs have different tasks: their scores cannot be compared.") : null,
    runs.length ? drawing(runs, theme) : el("p", { class: "empty" }, "Choose the runs to compare."),
    runs.length ? table(runs, theme()) : null,
  );
}

function drawing(runs, theme) {
  const lines = runs.map(({ run, points }) => ({ name: run, points }));
  const { places, direction } = runs.find((each) => each.best !== null) ?? runs[0];
  const told = { lines, unit: "evaluations", places, falling: direction === "minimize" };
  return canvasOf((width, height) => curves(told, theme(), width, height), 320, "Best so far of each run against evaluations");
}

function table(runs, theme) {
  const swatch = (k) => {
    const mark = el("span", { class: "swatch" });
    mark.style.background = theme.hues[k % theme.hues.length];
    return mark;
  };
  const rows = runs.map((each, k) => [
    swatch(k),
    firstLine(each.run),
    firstLine(each.task ?? ""),
    each.best === null ? "-" : number(each.best, each.places) + margin(each.margin, each.places),
    whole(each.evaluated),
    dollars(each.dollars),
  ]);
  return grid(["", "run", "task", "best", "evaluations", "spent"], rows, "lllrrr");
}
