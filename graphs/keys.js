// The keyboard: everything the page can do, with its list.

import { button, el } from "./dom.js";

// `commands`: [keys, what it does, function].
export class Keys {
  constructor(commands) {
    this.commands = commands;
    this.table = new Map(commands.flatMap(([keys, , run]) => keys.map((key) => [key, run])));
    addEventListener("keydown", (event) => this.press(event));
  }

  press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
    if (event.key === "Escape" && typing) event.target.blur();
    if (typing || (event.key === "Enter" && event.target.tagName === "BUTTON")) return;
    const run = this.table.get(event.key);
    if (!run) return;
    event.preventDefault();
    run();
  }

  help() {
    const rows = this.commands.map(([keys, what]) => el("tr", {}, el("td", {}, keys.map((key) => el("kbd", {}, key))), el("td", {}, what)));
    const dialog = el(
      "dialog",
      { class: "dialog", "aria-label": "Keys", onclose: () => dialog.remove() },
      el("h2", {}, "Keys"),
      el("table", { class: "keys" }, el("tbody", {}, rows)),
      el("div", { class: "buttons end" }, button("Close", () => dialog.close())),
    );
    document.body.append(dialog);
    dialog.showModal();
  }
}
