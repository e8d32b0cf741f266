// What happens in a run, as it happens. All tabs of a browser share one stream: the one that has it tells the others.

const UNSEEN_FOR = 2000; // milliseconds until a tab out of sight lets go of its stream

const AGAIN = 2000; // milliseconds until a stream that was refused is asked for again

const MOST_HELD = 1000; // deltas that are kept while a person paused; after more, everything is read anew

export class Live {
  // `onDelta(delta)`: take it in; `onReload()`: too much was missed; `onState(state)`: "live", "lost" or "paused".
  constructor(source, name, position, { onDelta, onReload, onState }) {
    Object.assign(this, { source, name, position, onDelta, onReload, onState });
    this.paused = false;
    this.held = [];
    this.channel = new BroadcastChannel(`evogit ${name}`);
    this.channel.onmessage = ({ data }) => this.hear(data);
    this.onshow = () => this.look();
    document.addEventListener("visibilitychange", this.onshow);
    this.ask();
  }

  // A browser opens six connections to a server: six tabs with a stream each would let nobody ask anything, so one that
  // is out of sight lets go of its own, and is told what it missed when it is looked at again.
  look() {
    clearTimeout(this.leaving);
    if (document.hidden) this.leaving = setTimeout(() => this.leave(), UNSEEN_FOR);
    else if (!this.asked) this.ask();
  }

  ask() {
    this.asked = new AbortController();
    const lock = { signal: this.asked.signal };
    navigator.locks.request(`evogit ${location.host} ${this.name}`, lock, () => this.lead()).catch(() => {});
  }

  leave() {
    clearTimeout(this.waiting);
    this.stream?.close();
    this.asked?.abort();
    this.asked = null;
    this.stop?.();
  }

  // Hold the stream until this tab goes, or is out of sight.
  lead() {
    return new Promise((done) => {
      this.stop = done;
      this.connect();
    });
  }

  connect() {
    this.stream = this.source.events(this.position);
    this.stream.onopen = () => this.share({ state: "live" });
    this.stream.onerror = () => this.lose();
    this.stream.addEventListener("delta", ({ data }) => this.share({ delta: JSON.parse(data) }));
    this.stream.addEventListener("reload", () => this.share({ reload: true }));
  }

  // A browser comes back by itself after an interruption, but not after a refusal: of a server that was started anew,
  // until somebody opened its address.
  lose() {
    this.share({ state: "lost" });
    if (this.stream.readyState === EventSource.CLOSED) this.waiting = setTimeout(() => this.connect(), AGAIN);
  }

  share(told) {
    this.channel.postMessage(told);
    this.hear(told);
  }

  hear({ delta, state, reload }) {
    if (state) this.onState(this.paused ? "paused" : state);
    if (reload) this.onReload();
    if (delta && this.paused) this.hold(delta);
    else if (delta) this.take(delta);
  }

  hold(delta) {
    if (this.held.length < MOST_HELD) this.held.push(delta);
  }

  take(delta) {
    if (delta.after < this.position) return; // known; engines come and go without an entry, so its position may be the same
    if (delta.after > this.position) {
      this.onReload();
      return;
    }
    this.position = delta.position;
    this.onDelta(delta);
  }

  pause(paused) {
    this.paused = paused;
    this.onState(paused ? "paused" : "live");
    if (paused) return;
    const held = this.held.splice(0);
    if (held.length === MOST_HELD) this.onReload();
    else for (const delta of held) this.take(delta);
  }

  close() {
    document.removeEventListener("visibilitychange", this.onshow);
    clearTimeout(this.leaving);
    this.leave();
    this.channel.close();
  }
}
