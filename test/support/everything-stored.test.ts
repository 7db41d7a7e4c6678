import { expect, test } from "vitest";
import { heldIn } from "./everything-stored.ts";

const marker = "Jane/Doe 1";
const bytes = Buffer.from(marker);

test.each([
  ["as it is", marker],
  ["in other capitals", "jANE/dOE 1"],
  ["encoded for URLs", encodeURIComponent(marker)],
  ["in hex", bytes.toString("hex").toUpperCase()],
  ["in base64 at any offset", Buffer.from(`x${marker}y`).toString("base64")],
  ["in base64 at another offset", Buffer.from(`xy${marker}z`).toString("base64")],
  ["as escapes", Array.from(marker, (each) => `\\u00${each.charCodeAt(0).toString(16)}`).join("")],
])("a text holds a marker %s, wherever it stands", (_, form) => {
  const markers = new Set(["Joe/Public 1", marker, "other"]);
  for (const text of [form, `{"a":"${form}`, `${form}"}`]) {
    expect(heldIn(text, markers)).toEqual([marker]);
  }
});

test("a text holds no marker that it has a part of", () => {
  expect(heldIn("Jane/Doe, Jane/Do", new Set([marker]))).toEqual([]);
});
