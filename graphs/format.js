// Numbers as the terminal writes them (evogit/cli/text.py), digit for digit.

// A value with a fixed number of decimals, ties to even as in Python; a dash when there is none.
export function number(value, places) {
  if (value === null || value === undefined || Number.isNaN(value)) return "-";
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
  return separated(fixed(value, places));
}

// A difference with its sign; a tiny one keeps one digit of its own instead of reading as zero.
export function change(value, places) {
  if (value === null || Number.isNaN(value)) return "";
  const told = signed(separated(fixed(value, places)), value);
  if (!value || /[1-9]/.test(told)) return told;
  return signed(value.toExponential(0).replace(/e([+-])(\d)$/, "e$10$2"), value);
}

// A share of one as percent, of nearly one with more digits.
export function percent(share) {
  if (share === null || share === undefined) return "-";
  const told = fixed(share * 100, 1).replace(/^-(0\.0)$/, "$1");
  const left = Math.abs(1 - share);
  return `${told === "100.0" && left > 1e-12 ? fixed(share * 100, -Math.floor(Math.log10(100 * left))) : told} %`;
}

export function margin(value, places) {
  return value ? ` ± ${Number.isFinite(value) ? number(value, places) : "?"}` : "";
}

// A whole number with a comma between thousands.
export function whole(amount) {
  return separated(String(amount));
}

export function count(amount, noun) {
  return `${whole(amount)} ${noun}${amount === 1 ? "" : "s"}`;
}

// `$1.23`; less than ten cents with two digits of its own.
export function dollars(amount) {
  if (amount === null || amount === undefined) return "no price known";
  return amount >= 0.1 || !amount ? `$${separated(fixed(amount, 2))}` : `$${Number(amount.toPrecision(2))}`;
}

// A limit's amount in words.
export function amount(what, value) {
  if (what === "dollars") return dollars(value);
  return `${whole(value)} ${value === 1 ? what.replace(/s$/, "") : what}`;
}

// How long ago, in the largest unit that fits.
export function age(seconds) {
  for (const [size, unit] of [[86400, "d"], [3600, "h"], [60, "m"]]) if (seconds >= size) return `${Math.floor(seconds / size)}${unit}`;
  return `${Math.max(Math.floor(seconds), 0)}s`;
}

// A duration as `0:41` or `1:02:03`.
export function clock(seconds) {
  const whole = Math.max(Math.floor(seconds), 0);
  const two = (part) => String(part).padStart(2, "0");
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor((whole % 3600) / 60), whole % 60];
  return hours ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
}

function signed(told, value) {
  return value < 0 || Object.is(value, -0) ? (told.startsWith("-") ? told : `-${told}`) : `+${told}`;
}

function separated(told) {
  const [whole, rest] = told.split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  return rest === undefined ? grouped : `${grouped}.${rest}`;
}

function fixed(value, places) {
  if (Math.abs(value) >= 1e21) return BigInt(value).toString() + (places ? `.${"0".repeat(places)}` : "");
  const told = value.toFixed(places);
  const exact = value.toFixed(Math.min(places + 60, 100));
  const rest = exact.slice(exact.indexOf(".") + 1 + places);
  if (!/^50*$/.test(rest)) return negativeZero(told, value);
  const down = places ? exact.slice(0, exact.indexOf(".") + 1 + places) : exact.slice(0, exact.indexOf("."));
  return Number(down.slice(-1)) % 2 ? told : down;
}

function negativeZero(told, value) {
  return (value < 0 || Object.is(value, -0)) && !told.startsWith("-") ? `-${told}` : told;
}
