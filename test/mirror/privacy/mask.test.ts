import { describe, expect, test } from "vitest";
import { parseEventBody } from "../../../src/core/contract/event-envelope.ts";
import { maskBody, maskFields, mayHoldCardNumbers } from "../../../src/core/mirror/privacy/mask.ts";

const card = "4242 4242 4242 4242";
const digits = "4242424242424242";
const masked = "[card number ending 4242]";

describe("the fields of an object", () => {
  test.each([
    ["a note", { metadata: { note: card } }, { metadata: { note: masked } }, "metadata.note"],
    [
      "a name",
      { shipping_address: { first_name: digits } },
      { shipping_address: { first_name: masked } },
      "shipping_address.first_name",
    ],
    [
      "in lists",
      { transactions: [{ description: [digits] }] },
      { transactions: [{ description: [masked] }] },
      "transactions.description",
    ],
    ["as a number", { metadata: { card: Number(digits) } }, { metadata: { card: masked } }, "metadata.card"],
    ["as a key", { metadata: { [digits]: 1 } }, { metadata: { [masked]: 1 } }, "metadata.(key)"],
    ["in a field that nobody knows", { card_number: digits }, { card_number: masked }, "card_number"],
  ])("%s", (_, object, value, path) => {
    expect(mayHoldCardNumbers(object)).toBe(true);
    expect(maskFields(object)).toEqual({ value, paths: [path] });
    expect(maskFields(value)).toEqual({ value, paths: [] });
  });

  test.each([
    "id",
    "customer_id",
    "processor_transaction_id",
    "product_ids",
    "order_number",
    "phone",
    "email",
    "created_at",
    "failure_code",
    "image_url",
    "discount_amount",
    "total",
  ])("%s stays as it came, at any depth", (key) => {
    const object = { [key]: digits, metadata: { [key]: [digits, Number(digits)] } };
    const { value, paths } = maskFields(object);
    expect(value).toBe(object);
    expect(paths).toEqual([]);
    expect(mayHoldCardNumbers(object)).toBe(false);
  });

  test("of two keys that become the same the same one stays, whatever order they came in", () => {
    const [a, b] = ["4242424242424242", "4000056655664242"];
    expect(maskFields({ [a]: 1, [b]: 2 }).value).toEqual(maskFields({ [b]: 2, [a]: 1 }).value);
  });

  test("the path of a field is short and can be stored, whatever the keys are", () => {
    const [path = ""] = maskFields({ ["k\u0000".repeat(90)]: { note: digits } }).paths;
    expect(path).not.toContain("\u0000");
    expect(path.length).toBeLessThan(70);
  });
});

describe("the bytes of a body", () => {
  const rewritten = (text: string) => {
    const raw = Buffer.from(text);
    return maskBody({ raw, body: parseEventBody(raw) })?.value.toString() ?? null;
  };

  test.each([
    ["JSON", `{"id":"e","note":"${card}"}`, `{"id":"e","note":"${masked}"}`],
    ["escaped digits", `{"note":"\\u0034${digits.slice(1)}"}`, `{"note":"${masked}"}`],
    ["no JSON", `{"note":"é ${card}`, `{"note":"é ${masked}`],
    [
      "nested too deeply",
      `${"[".repeat(900)}"${digits}"${"]".repeat(900)}`,
      `${"[".repeat(900)}"${masked}"${"]".repeat(900)}`,
    ],
    ["none", `{"id":"${digits}","note":"1740830400000"}`, null],
  ])("%s", (_, text, expected) => {
    expect(rewritten(text)).toBe(expected);
  });
});
