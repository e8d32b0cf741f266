// What a person looks at, kept in the address, so that a link shows the same to somebody else.

const DEFAULTS = {
  run: "",
  page: document.body.dataset.page ?? "graph",
  view: "skeleton",
  x: "time",
  y: "score",
  colour: "agent",
  merges: "1",
  dead: "1",
  all: "",
  filter: "",
  sort: "",
  select: "best",
  pin: "",
  tab: "summary",
  base: "",
};

export class State {
  constructor(onchange) {
    this.onchange = onchange;
    this.read();
    addEventListener("hashchange", () => {
      this.read();
      this.onchange(this);
    });
  }

  read() {
    const told = new URLSearchParams(location.hash.slice(1));
    for (const [name, value] of Object.entries(DEFAULTS)) this[name] = told.get(name) ?? value;
  }

  // Change some of it; a selection replaces the last entry of the browser's history, a page adds one.
  set(changes) {
    const step = "page" in changes && changes.page !== this.page;
    Object.assign(this, changes);
    const told = Object.entries(DEFAULTS).filter(([name, value]) => this[name] !== value).map(([name]) => [name, this[name]]);
    history[step ? "pushState" : "replaceState"](null, "", `#${new URLSearchParams(told)}`);
    this.onchange(this);
  }
}
