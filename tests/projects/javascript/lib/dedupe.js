// The items without repetitions, each where it comes first.
export function dedupe(items) {
  const seen = [];
  for (const item of items) {
    if (!seen.includes(item)) {
      seen.push(item);
    }
  }
  return seen;
}

// The items that come more than once, in the order of their first repetition.
export function repeated(items) {
  return dedupe(items.filter((item, index) => items.indexOf(item) !== index));
}
