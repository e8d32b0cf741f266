// The keyboard: everything the page can do, with its list.

import { button, el } from "./dom.js";

const KEY_NAMES = { " ": "Space", ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓", Escape: "Esc" };

// `commands`: [keys, what it does, function].
const FILTER = 'score>2.5 gain>0 evaluation<=100 seconds<60 dollars<1 agent:a1 operator:merge model:NAME status:timeout host:NAME file:PATH above:best below:ID failed waiting scored better best record promoted pruned "any words"';

export class Keys {
  constructor(commands) {
    this.commands = commands;
    this.table = new Map(commands.flatMap(([keys, , run]) => keys.map((key) => [key, run])));
    addEventListener("keydown", (event) => this.press(event));
  }

  press(event) {
    const dialog = document.querySelector("dialog[open]");
    if (dialog && event.key === "Escape") {
      event.preventDefault(); // else a busy browser may close it later, and the next one with it
      dialog.close();
    }
    if (event.ctrlKey || event.metaKey || event.altKey || dialog) return;
    // A dialog that was just closed keeps the focus until the browser paints.
    const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName) && !event.target.closest("dialog:not([open])");
    if (event.key === "Escape" && typing) event.target.blur();
    if (typing || (event.key === "Enter" && event.target.tagName === "BUTTON")) return;
    const run = this.table.get(event.key);
    if (!run) return;
    event.preventDefault();
    run(event.key);
  }

  help() {
    const name = (key) => el("kbd", {}, KEY_NAMES[key] ?? key);
    const rows = this.commands.map(([keys, what]) => el("div", {}, el("dt", {}, keys.map(name)), el("dd", {}, what)));
    const dialog = el(
      "dialog",
      { class: "dialog wide", "aria-label": "Keys", onclose: () => dialog.remove() },
      el("h2", {}, "Keys"),
      el("dl", { class: "keys" }, rows),
      el("h2", {}, "Filter"),
      el("p", {}, "Words that must all hold: ", el("code", {}, FILTER)),
      el("div", { class: "buttons end" }, button("Close", () => dialog.close())),
    );
    document.body.append(dialog);
    dialog.showModal();
    dialog.scrollTop = 0;
  }
}
