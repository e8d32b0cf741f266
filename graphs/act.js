// What a person decides: the plan first, then a reason, then how to take it back.

import { button, el, fill, visible } from "./dom.js";

const TITLES = {
  promote: "Promote",
  prune: "Prune",
  guide: "Guide all agents",
  note: "Note",
  undo: "Undo",
  stop: "Stop the run",
  merge: "Merge with the pinned candidate",
  graft: "Graft onto the pinned candidate",
  land: "Land",
  judge: "Judge",
};

const REASONED = new Set(["promote", "prune", "guide", "note", "judge"]);

export class Actions {
  // `done(told)`: a decision was made.
  constructor(source, toasts, done) {
    Object.assign(this, { source, toasts, done });
    this.turns = 0; // of plans: only the last one that was asked for is shown
  }

  // Ask the server what a decision would change, show it, and make it if the person wants.
  async begin(decision) {
    this.decision = { subtree: false, carriers: false, reason: "", ...decision };
    this.reason = el("textarea", { rows: "3", maxlength: "2000", autofocus: true, "aria-label": decision.kind === "guide" ? "What agents are told" : "Why", placeholder: decision.kind === "guide" ? "What agents are told from now on" : "Why (required); it is kept with the decision" });
    this.reason.addEventListener("input", () => (this.error.textContent = ""));
    this.words = el("div", { class: "plan" });
    this.error = el("p", { class: "error", role: "alert" });
    this.go = button(TITLES[decision.kind], () => this.decide(), { class: "primary" });
    const form = el(
      "dialog",
      { class: "dialog", "aria-label": TITLES[decision.kind], onclose: () => this.leave(form) },
      el("h2", {}, TITLES[decision.kind]),
      this.words,
      this.choices(),
      REASONED.has(decision.kind) ? this.reason : null,
      this.error,
      el("div", { class: "buttons end" }, button("Cancel", () => form.close()), decision.kind === "land" ? null : this.go),
    );
    this.form = form;
    form.addEventListener("keydown", (event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && this.decide());
    document.body.append(form);
    form.showModal();
    await this.plan();
  }

  // A plan that is still on its way belongs to no dialog any more.
  leave(form) {
    if (form === this.form) this.turns += 1;
    form.remove();
  }

  choices() {
    const { kind } = this.decision;
    if (kind === "prune")
      return el(
        "div",
        {},
        this.option("subtree", "also everything that was or will be bred from it"),
        this.option("carriers", "also all that copied its code; later copies are refused"),
      );
    if (kind !== "judge") return null;
    const name = (verdict, text) =>
      el("label", {}, el("input", { type: "radio", name: "verdict", value: verdict, onchange: () => this.choose({ verdict }) }), ` ${text}`);
    return el("fieldset", {}, el("legend", {}, "Which is better?"), name("a", "this one"), name("b", "the pinned one"), name("tie", "neither"));
  }

  choose(changes) {
    Object.assign(this.decision, changes);
    this.plan();
  }

  option(name, text) {
    const change = (event) => this.choose({ [name]: event.target.checked });
    return el("label", { class: "option" }, el("input", { type: "checkbox", onchange: change }), ` ${text}`);
  }

  async plan() {
    const turn = (this.turns += 1);
    fill(this.words, el("p", { class: "quiet" }, "…"));
    fill(this.error);
    this.go.disabled = true;
    const plan = await this.source.plan({ ...this.decision, reason: this.reason.value || "-" }).catch((error) => ({ error }));
    if (turn !== this.turns) return;
    if (!plan.error) return this.show(plan);
    fill(this.words);
    fill(this.error, plan.error.message);
  }

  show(plan) {
    this.digest = plan.digest;
    this.key = crypto.getRandomValues(new Uint32Array(4)).join("-"); // what is sent twice is decided once
    fill(this.words, el("ul", {}, plan.words.map((each) => el("li", {}, visible(each)))), plan.command ? el("pre", {}, visible(plan.command)) : null);
    this.go.disabled = false;
    if (!REASONED.has(this.decision.kind)) this.go.focus(); // nothing is to be typed
  }

  async decide() {
    if (this.go.disabled) return; // no plan yet, or decided already
    const { form } = this;
    const reason = this.reason.value.trim();
    if (REASONED.has(this.decision.kind) && !reason) {
      this.error.textContent = "Say why: it is kept with the decision.";
      this.reason.focus();
      return;
    }
    this.go.disabled = true;
    try {
      const told = await this.source.decide({ ...this.decision, reason, digest: this.digest, key: this.key });
      form.close();
      this.tell(told);
      this.done(told);
    } catch (error) {
      if (form === this.form) this.refused(error);
    }
  }

  refused(error) {
    this.go.disabled = false;
    fill(this.error, error.message);
    if (error.status !== 409 || !error.told?.plan) return;
    this.error.textContent = "Something changed meanwhile; this is what it would do now.";
    this.show(error.told.plan);
  }

  // Say what was done, with its undo.
  tell({ words, decision, undo }) {
    const said = (words ?? ["Done."])[0];
    this.say(`Done: ${said}`, undo ? button("Undo", () => this.begin({ kind: "undo", decision }), { title: undo }) : null);
  }

  // Tell something for a while.
  say(words, more = null) {
    const toast = el("div", { class: "toast" }, el("span", {}, visible(words)), more, button("×", () => toast.remove(), { "aria-label": "Close" }));
    this.toasts.append(toast);
    setTimeout(() => toast.remove(), 15000);
  }
}
