// The filter language: words that must all hold, as `score>2.5 agent:a3 failed below:9f2c1ab "step size"`.

const FLAGS = {
  __proto__: null, // a word of a person's is no name that all objects have
  failed: (run, index) => run.failed(index),
  waiting: (run, index) => run.waits(index),
  scored: (run, index) => !Number.isNaN(run.value[index]),
  best: (run, index) => index === run.best,
  record: (run, index) => run.recordSet.has(index),
  promoted: (run, index) => run.promoted.has(index),
  pruned: (run, index) => run.pruned.has(index),
  better: (run, index) => run.better(index),
};

const NUMBERS = {
  __proto__: null,
  score: (run, index) => run.value[index],
  gain: (run, index) => run.gain(index),
  change: (run, index) => run.gain(index), // what `gain` was called before
  evaluation: (run, index) => run.evaluated[index] || NaN,
  dollars: (run, index) => run.dollars[index] ?? NaN,
  seconds: (run, index) => (run.elapsed[index] < 0 ? NaN : run.elapsed[index] / 1000),
};

const NAMES = {
  __proto__: null,
  agent: (run, index) => run.agentName(index),
  operator: (run, index) => run.operatorName(index),
  status: (run, index) => run.statusName(index),
  model: (run, index) => run.modelName(index),
  strategy: (run, index) => run.strategyName(index),
  family: (run, index) => run.familyName(index),
  host: (run, index) => run.names.hosts[run.host[index]],
};

const COMPARE = {
  ">": (a, b) => a > b,
  "<": (a, b) => a < b,
  ">=": (a, b) => a >= b,
  "<=": (a, b) => a <= b,
  "=": (a, b) => a === b,
};

export class FilterError extends Error {}

// What a filter asks for: `{holds(run) -> (index) -> bool, text, file}`; `text` and `file` are for the server to look up.
export function parse(filter) {
  const tests = [];
  const text = [];
  const files = [];
  for (const word of words(filter)) {
    const test = understood(word);
    if (test) tests.push(test);
    else if (word.startsWith("file:")) files.push(word.slice(5));
    else text.push(word.replace(/^"|"$/g, ""));
  }
  return { tests, text: text.join(" "), file: files[0] ?? "" };
}

// The indices that hold in every word; `found`: what the server found for text and files, or null.
export function chosen(run, { tests }, found) {
  const ready = tests.map((test) => test(run));
  const all = new Set();
  for (let index = 0; index < run.amount; index += 1)
    if ((!found || found.has(index)) && ready.every((holds) => holds(index))) all.add(index);
  return all;
}

function words(filter) {
  return filter.match(/\S*"[^"]*"|\S+/g) ?? [];
}

function understood(word) {
  if (FLAGS[word]) return (run) => (index) => FLAGS[word](run, index);
  const compared = /^([a-z]+)(>=|<=|>|<|=)(.+)$/.exec(word);
  if (compared) return comparison(...compared.slice(1));
  const [, name, wanted] = /^([a-z]+):(.+)$/.exec(word) ?? [];
  const text = wanted?.replaceAll('"', "");
  if (NAMES[name] && wanted.startsWith('"')) return (run) => (index) => NAMES[name](run, index) === text;
  if (NAMES[name]) return (run) => (index) => NAMES[name](run, index).startsWith(text);
  if (name === "below") return (run) => membership(run.descendants([candidate(run, wanted)]));
  if (name === "above") return (run) => membership(run.ancestors([candidate(run, wanted)]));
  if (name && name !== "file")
    throw new FilterError(`expected one of ${[...Object.keys(NAMES), "file", "below", "above"].join(", ")}, got ${name}:`);
  return null;
}

function comparison(name, sign, told) {
  const limit = Number(told);
  if (!NUMBERS[name]) throw new FilterError(`expected one of ${Object.keys(NUMBERS).join(", ")}, got ${name}`);
  if (Number.isNaN(limit)) throw new FilterError(`expected a number after ${name}${sign}, got ${told}`);
  return (run) => (index) => COMPARE[sign](NUMBERS[name](run, index), limit);
}

function candidate(run, revision) {
  const index = revision === "best" ? run.best : revision === "seed" ? run.seed : run.find(revision);
  if (index === null || index < 0) throw new FilterError(`expected a candidate's id (4 digits or more), got ${revision}`);
  return index;
}

function membership(set) {
  return (index) => set.has(index);
}
