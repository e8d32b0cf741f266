import assert from "node:assert/strict";
import { test } from "node:test";

import { dedupe, repeated } from "../lib/index.js";

test("each item stays where it comes first", () => {
  assert.deepEqual(dedupe([3, 1, 3, 2, 1]), [3, 1, 2]);
});

test("a number is not the text of it", () => {
  assert.deepEqual(dedupe([1, "1"]), [1, "1"]);
});

test("repeated items are named once", () => {
  assert.deepEqual(repeated(["a", "b", "a", "a"]), ["a"]);
});

test("an empty list stays empty", () => {
  assert.deepEqual(dedupe([]), []);
});
