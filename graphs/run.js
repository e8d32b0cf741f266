// The candidates of one run as columns; a candidate's place in them is its index, and parents come before children.

import { change } from "./format.js";

const DIGITS = 8; // of an id, as far as the page knows it

const UNMEASURED = ["waiting", "old", "evaluator-error", "not-measured"]; // statuses that say nothing of a candidate, as in history/standing.py

export const FILELESS = ["not read yet", "no file", "several files"]; // what a candidate has in place of a changed file

export class Run {
  constructor(payload) {
    this.about = payload;
    this.names = { ...payload.names, files: [FILELESS[0]] };
    this.amount = 0;
    this.ids = [];
    this.time = []; // seconds since the epoch
    this.parent = []; // index of the first parent, -1: none
    this.agent = []; // this and the next four: places in `names`
    this.operator = [];
    this.strategy = [];
    this.family = [];
    this.model = [];
    this.host = [];
    this.status = []; // 0: waits for its evaluation
    this.file = []; // place in `names.files`, as far as it was told
    this.value = []; // NaN: none
    this.margin = []; // half of the 95 % interval, 0: exact
    this.gains = []; // over the fittest that it comes from, positive: better, NaN: none; the server derives it
    this.verdict = []; // place in `names.verdicts`
    this.evaluated = []; // the how many-th evaluation it was, 0: none yet
    this.elapsed = []; // milliseconds after the beginning, -1: none yet
    this.dollars = []; // spent by the whole run until its evaluation; null: none yet, or no price is known
    this.tokens = [];
    this.holdout = new Map(); // index -> [value, low, high]
    this.second = new Map(); // index -> further parents
    this.inspiration = new Map(); // index -> those that brought lines and are no parents
    this.firstChild = [];
    this.nextSibling = [];
    this.lastChild = [];
    this.course = []; // steps of the best so far: [index, evaluations, elapsed, dollars]
    this.take(payload);
  }

  // Take in the payload or what came since; `changed` rows are evaluated (again).
  take(told) {
    for (const [kind, texts] of Object.entries(told === this.about ? {} : told.names ?? {})) this.names[kind].push(...texts);
    this.append(told.candidates ?? told.added);
    for (const row of told.changed ?? []) this.change(row);
    this.about.places = told.places ?? this.about.places;
    if (told.marks) this.mark(told.marks);
    this.course = told.best_course ?? this.course;
    this.agents = told.agents ?? this.agents ?? {};
    this.alive = told.alive;
    this.now = told.now;
    this.position = told.position;
  }

  append(columns) {
    if (!columns?.amount) return;
    const first = columns.first ?? 0;
    const ids = hexadecimal(columns.id);
    const elapsed = totals(columns.elapsed);
    const tokens = totals(columns.tokens);
    const dollars = totals(columns.dollars);
    for (let k = 0; k < columns.amount; k += 1) {
      const index = first + k;
      this.ids.push(ids.slice(k * DIGITS, (k + 1) * DIGITS));
      this.time.push((index ? this.time[index - 1] : this.about.began) + columns.time[k]);
      this.link(index, columns.parent[k] ? index - columns.parent[k] : -1);
      for (const name of ["agent", "operator", "strategy", "model", "family", "status", "verdict"]) this[name].push(columns[name][k]);
      this.file.push(0);
      this.host.push(columns.host[k] ?? 0);
      this.value.push(columns.value[k] ?? NaN);
      this.margin.push(half(columns.margin[index]));
      this.gains.push(columns.gain[k] ?? NaN);
      this.evaluated.push(columns.evaluated[k] === null ? 0 : columns.evaluated[k] + index);
      this.elapsed.push(elapsed[k] ?? -1);
      this.tokens.push(tokens[k] ?? 0);
      this.dollars.push(dollars[k] === null ? null : dollars[k] / 1e9);
    }
    this.amount = first + columns.amount;
    for (const name of ["holdout", "second", "inspiration"])
      for (const [index, found] of Object.entries(columns[name])) this[name].set(Number(index), found);
  }

  // Say which file a candidate changed, or that it was none or several.
  touch(index, paths) {
    const [, none, several] = FILELESS;
    const name = paths.length > 1 ? several : (paths[0] ?? (index === this.seed ? "seed" : none));
    if (!this.names.files.includes(name)) this.names.files.push(name);
    this.file[index] = this.names.files.indexOf(name);
  }

  gain(index) {
    return this.gains[index];
  }

  better(index) {
    return this.names.verdicts[this.verdict[index]].endsWith("better");
  }

  // As `Comparison.text` in evogit/history/standing.py.
  gainText(index) {
    // A tilde: not measured side by side.
    const [, apart, verdict] = this.names.verdicts[this.verdict[index]].match(/(~?)(.*)/);
    if (!verdict || verdict === "tied") return verdict;
    return apart + change(this.gains[index], this.about.places) + (verdict === "within noise" ? ` ${verdict}` : "");
  }

  // How a candidate came to be, along the fittest that each comes from, as `way` in evogit/history/standing.py; youngest first.
  way(index) {
    const found = [];
    const worth = (each) => (Number.isNaN(this.value[each]) ? -Infinity : (this.higherIsBetter ? 1 : -1) * this.value[each]);
    for (let each = index; each !== undefined; each = this.origin(each, worth)) found.push(each);
    return found;
  }

  origin(index, worth) {
    const known = this.edges(index).map(([to]) => to);
    return known.length ? known.reduce((fittest, each) => (worth(each) > worth(fittest) ? each : fittest)) : undefined;
  }

  link(index, parent) {
    this.parent.push(parent);
    this.firstChild.push(-1);
    this.nextSibling.push(-1);
    this.lastChild.push(-1);
    if (parent < 0) return;
    if (this.firstChild[parent] < 0) this.firstChild[parent] = index;
    else this.nextSibling[this.lastChild[parent]] = index;
    this.lastChild[parent] = index;
  }

  change(row) {
    const index = row.index;
    this.value[index] = row.value ?? NaN;
    this.margin[index] = half(row.margin);
    this.gains[index] = row.gain ?? NaN;
    for (const name of ["status", "verdict", "evaluated", "elapsed", "dollars", "tokens"]) this[name][index] = row[name];
    if (row.holdout) this.holdout.set(index, row.holdout);
  }

  mark(marks) {
    this.seed = marks.seed;
    this.best = marks.best;
    this.records = marks.records;
    this.living = marks.living;
    this.decided = marks.decided;
    this.promoted = new Set(marks.promoted);
    this.pruned = new Set(marks.pruned);
    this.recordSet = new Set(marks.records);
  }

  get higherIsBetter() {
    return this.about.metric.direction === "maximize";
  }

  short(index) {
    return this.ids[index].slice(0, 7);
  }

  find(prefix) {
    return prefix.length < 4 ? -1 : this.ids.findIndex((id) => prefix.startsWith(id) || id.startsWith(prefix));
  }

  parents(index) {
    const first = this.parent[index];
    return first < 0 ? [] : [first, ...(this.second.get(index) ?? [])];
  }

  // Parents and inspirations, each with its kind.
  edges(index) {
    const first = this.parent[index];
    if (first < 0) return [];
    const kind = this.operatorName(index) === "graft" ? "graft" : "merge";
    return [
      [first, "parent"],
      ...(this.second.get(index) ?? []).map((each) => [each, kind]),
      ...(this.inspiration.get(index) ?? []).map((each) => [each, "inspiration"]),
    ];
  }

  children(index) {
    const found = [];
    for (let child = this.firstChild[index]; child >= 0; child = this.nextSibling[child]) found.push(child);
    for (const [child, others] of this.second) if (others.includes(index)) found.push(child);
    return found;
  }

  agentName(index) {
    return this.names.agents[this.agent[index]];
  }

  operatorName(index) {
    return this.names.operators[this.operator[index]];
  }

  statusName(index) {
    return this.names.statuses[this.status[index]];
  }

  modelName(index) {
    return this.names.models[this.model[index]];
  }

  familyName(index) {
    return this.names.families[this.family[index]];
  }

  strategyName(index) {
    return this.names.strategies[this.strategy[index]];
  }

  waits(index) {
    return UNMEASURED.includes(this.statusName(index));
  }

  failed(index) {
    return Number.isNaN(this.value[index]) && !UNMEASURED.includes(this.statusName(index));
  }

  // What a candidate is to a person, the most telling first.
  kind(index) {
    if (this.pruned.has(index)) return "pruned";
    if (index === this.best) return "best";
    if (this.promoted.has(index)) return "promoted";
    if (index === this.seed) return "seed";
    if (this.waits(index)) return "waiting";
    return this.failed(index) ? "failed" : "scored";
  }

  // Indices of `starts` and all that they come from.
  ancestors(starts) {
    return reach(starts, (index) => this.parents(index));
  }

  descendants(starts) {
    const found = new Set(starts);
    const first = Math.min(...starts);
    for (let index = first; index < this.amount; index += 1)
      if (this.parents(index).some((each) => found.has(each))) found.add(index);
    return found;
  }
}

// Half of an interval: 0 where scores are exact, infinite where the noise is not known yet.
export function half(told) {
  return told === "unknown" ? Infinity : (told ?? 0);
}

function reach(starts, neighbours) {
  const found = new Set(starts);
  const waiting = [...found];
  while (waiting.length)
    for (const each of neighbours(waiting.pop()))
      if (!found.has(each)) {
        found.add(each);
        waiting.push(each);
      }
  return found;
}

// What differences add up to; null where there is none.
function totals(steps) {
  let sum = 0;
  return steps.map((step) => (step === null ? null : (sum += step)));
}

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// Base64 as hexadecimal digits, without the browser's help: the same code draws graphs where there is no browser.
function hexadecimal(base64) {
  const digits = [];
  let bits = 0;
  let held = 0;
  for (const letter of base64.replace(/=+$/, "")) {
    held = (held << 6) | ALPHABET.indexOf(letter);
    bits += 6;
    while (bits >= 4) {
      bits -= 4;
      digits.push(((held >> bits) & 15).toString(16));
    }
    held &= (1 << bits) - 1;
  }
  return digits.join("");
}
