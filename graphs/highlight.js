// Colours for code in diffs: comments, strings, numbers and words that most languages reserve. It need not be exact.

const WORDS = new Set(
  ("and as assert async await break case catch class const continue def default del do elif else enum except export extends " +
    "False false finally fn for from func function global go if impl import in interface is lambda let match mod mut new " +
    "None nil nonlocal not null or package pass private pub public raise return self static struct super switch this throw " +
    "trait True true try type typedef union unsafe use using var void while with yield").split(" "),
);

const HASH = /\.(py|sh|rb|toml|yaml|yml|r|pl|cmake|mk|jl)$|Makefile$|Dockerfile$/i;
const SLASHES = /\.(c|h|cc|cpp|hpp|rs|go|js|mjs|ts|tsx|jsx|java|kt|swift|cs|scala|php|css)$/i;

const STRING = `"(?:\\\\.|[^"\\\\])*"|'(?:\\\\.|[^'\\\\])*'|\`(?:\\\\.|[^\`\\\\])*\``;
const REST = "\\b\\d[\\w.]*|[A-Za-z_]\\w*";

const LONGEST = 2000; // characters of a line that is coloured

// A line as elements' texts: [class or "", text] pairs.
export function highlight(line, path) {
  const comment = HASH.test(path) ? "#.*" : SLASHES.test(path) ? "//.*|/\\*.*?(?:\\*/|$)" : null;
  if (!comment || line.length > LONGEST) return [["", line]];
  const token = new RegExp(`(${comment})|(${STRING})|(${REST})`, "g");
  const parts = [];
  let last = 0;
  for (const found of line.matchAll(token)) {
    const kind = found[1] ? "comment" : found[2] ? "string" : /^\d/.test(found[0]) ? "number" : WORDS.has(found[0]) ? "keyword" : null;
    if (!kind) continue;
    if (found.index > last) parts.push(["", line.slice(last, found.index)]);
    parts.push([kind, found[0]]);
    last = found.index + found[0].length;
  }
  if (last < line.length) parts.push(["", line.slice(last)]);
  return parts;
}
