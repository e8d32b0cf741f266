// Titles and changed files, fetched in blocks when they are looked at.

const BLOCK = 500;

export class Titles {
  constructor(source, onload) {
    this.source = source;
    this.onload = onload;
    this.blocks = new Map();
    this.asked = new Set();
    this.fresh = new Map(); // titles that came with their candidates
  }

  hear(first, titles) {
    titles.forEach((title, k) => this.fresh.set(first + k, title));
  }

  // The title, or null while it is on its way.
  title(index) {
    return this.of(index)?.titles[index % BLOCK] ?? this.fresh.get(index) ?? null;
  }

  paths(index) {
    return this.of(index)?.paths[index % BLOCK] ?? [];
  }

  // Tell a run which files its candidates changed, and fetch what is not here, block by block.
  tell(run) {
    let missing = null;
    for (let index = 0; index < run.amount; index += 1) {
      const block = this.blocks.get(Math.floor(index / BLOCK));
      if (block && index % BLOCK < block.paths.length) run.file[index] || run.touch(index, block.paths[index % BLOCK]);
      else missing ??= index;
    }
    if (missing !== null) this.of(missing);
  }

  // A block that grew since must be fetched again.
  grown(amount) {
    const last = Math.floor((amount - 1) / BLOCK);
    for (const number of [last - 1, last]) if ((this.blocks.get(number)?.titles.length ?? BLOCK) < BLOCK) this.asked.delete(number);
  }

  of(index) {
    const number = Math.floor(index / BLOCK);
    if (!this.asked.has(number)) this.fetch(number);
    return this.blocks.get(number);
  }

  async fetch(number) {
    this.asked.add(number);
    try {
      this.blocks.set(number, await this.source.block(number));
      this.onload();
    } catch {
      this.asked.delete(number);
    }
  }
}
