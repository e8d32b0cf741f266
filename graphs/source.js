// Where a page's facts come from: a server, or the file that the page is in.

const REFUSED = { 401: "The server was started anew: open the address that `evogit serve` printed." };

// What the address with the token left (enter.js); another one after the server was started anew.
function key() {
  return localStorage.getItem("evogit") ?? "";
}

export class SourceError extends Error {
  constructor(message, status = 0, told = null) {
    super(message);
    this.status = status;
    this.told = told;
  }
}

export class ServerSource {
  live = true;

  async runs() {
    return this.ask("api/runs");
  }

  // All of a run; what else is asked is about `name`, the run that is shown.
  run(name) {
    return this.ask(`api/runs/${encodeURIComponent(name)}`);
  }

  block(number) {
    return this.about(`/block/${number}`);
  }

  search(text, file) {
    return this.about(`/search?${new URLSearchParams({ text, file })}`);
  }

  candidate(index) {
    return this.about(`/candidates/${index}`);
  }

  diff(from, to) {
    return this.about(`/diff/${from}/${to}`);
  }

  evaluation(index) {
    return this.about(`/evaluation/${index}`);
  }

  session(index) {
    return this.about(`/session/${index}`);
  }

  report() {
    return this.about("/report");
  }

  decisions() {
    return this.about("/decisions");
  }

  plan(decision) {
    return this.post("/plan", decision);
  }

  decide(decision) {
    return this.post("/decide", decision);
  }

  events(position) {
    return new EventSource(`api/runs/${encodeURIComponent(this.name)}/events?${new URLSearchParams({ after: position, key: key() })}`);
  }

  about(path, options) {
    return this.ask(`api/runs/${encodeURIComponent(this.name)}${path}`, options);
  }

  post(path, body) {
    const headers = { "Content-Type": "application/json" };
    return this.about(path, { method: "POST", headers, body: JSON.stringify(body) });
  }

  // Asked again, as a browser drops what is on its way when a network of the machine comes or goes.
  async ask(path, options, tries = 3) {
    const headers = { "X-EvoGit": key(), ...options?.headers };
    const answer = await fetch(path, { credentials: "same-origin", ...options, headers }).catch(() => null);
    if (!answer && tries > 1) {
      await new Promise((later) => setTimeout(later, 100));
      return this.ask(path, options, tries - 1);
    }
    if (!answer) throw new SourceError("The server does not answer; is `evogit serve` still at work?");
    const told = await answer.json().catch(() => ({}));
    if (!answer.ok) throw new SourceError(told.error ?? REFUSED[answer.status] ?? `The server answered ${answer.status}.`, answer.status, told);
    return told;
  }
}

// Everything is in the page: a gzipped JSON object in an element, for who opens the file from disk.
export class FileSource {
  live = false;

  constructor(element) {
    this.element = element;
  }

  async open() {
    const packed = Uint8Array.from(atob(this.element.textContent.trim()), (letter) => letter.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    this.data = await new Response(stream).json();
    this.element.remove();
  }

  async runs() {
    const { run, task } = this.data.run;
    return { runs: [{ run, task }] };
  }

  async run() {
    return this.data.run;
  }

  async block(number) {
    return this.data.blocks[number];
  }

  async search(text, file) {
    const wanted = text.toLowerCase();
    const holds = (title, paths) => title.toLowerCase().includes(wanted) && (!file || paths.some((path) => path.includes(file)));
    const found = [];
    this.data.blocks.forEach((block, b) =>
      block.titles.forEach((title, k) => {
        if (holds(title, block.paths[k])) found.push(b * 500 + k);
      }),
    );
    return { found };
  }

  candidate(index) {
    return this.part("candidates", index);
  }

  async evaluation(index) {
    const found = await this.part("evaluations", index);
    return { ...found, evidence: this.texts(found.evidence ?? []) };
  }

  async session(index) {
    const { told, said, facts } = await this.part("sessions", index);
    return { told: this.texts(told), said: this.texts(said), facts };
  }

  async diff(from, to) {
    const { files } = await this.part("diffs", `${from}/${to}`);
    const line = ([sign, number]) => [sign, this.data.lines[number]];
    const hunks = (found) => found.map(({ header, lines }) => ({ header, lines: lines.map(line) }));
    return { files: files.map((file) => ({ ...file, hunks: hunks(file.hunks) })) };
  }

  async report() {
    return this.data.report;
  }

  async decisions() {
    return { decisions: this.data.decisions };
  }

  async part(kind, key) {
    const found = this.data[kind]?.[key];
    if (found) return found;
    throw new SourceError("This was left out of the file; `evogit serve` shows it.");
  }

  // Texts are lists of lines in the file, each line there once.
  text(numbers) {
    return numbers.map((number) => this.data.lines[number]).join("\n");
  }

  texts(parts) {
    return parts.map((part) => ({ ...part, text: this.text(part.text) }));
  }
}

export async function openSource() {
  const embedded = document.getElementById("embedded");
  if (!embedded) return new ServerSource();
  const source = new FileSource(embedded);
  await source.open();
  return source;
}
