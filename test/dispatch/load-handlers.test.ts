import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, expectTypeOf, test } from "vitest";
import { type Change } from "../../src/core/mirror/changes/read-changes.ts";
import {
  type Order,
  type Subscription,
  defineHandler,
  isMarked,
} from "../../src/parts/delivery/dispatch/define-handler.ts";
import { loadHandlers } from "../../src/parts/delivery/handlers/load-handlers.ts";
import { postponementOf } from "../../src/parts/delivery/dispatch/postpone.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "tallyhook-handlers-"));
});
afterEach(() => rm(folder, { recursive: true }));

const definition = new URL("../../src/parts/delivery/dispatch/define-handler.ts", import.meta.url).href;

/** Writes files; `HANDLER` stands for a usable definition. */
async function load(files: Record<string, string>) {
  for (const [name, text] of Object.entries(files)) {
    const usable = `defineHandler({ name: "receipts", on: ["order.refunded"], run() {} })`;
    const body = text.replace("HANDLER", usable);
    await writeFile(join(folder, name), `import { defineHandler } from ${JSON.stringify(definition)};\n${body}\n`);
  }
  const importFile = (url: string): Promise<unknown> => import(/* @vite-ignore */ url);
  const { handlers, problem } = await loadHandlers({ importFile }, [folder]);
  return { names: handlers.map(({ name }) => name), problem };
}

describe("a folder of handlers", () => {
  test("gives the default exports of its files, and leaves out examples, tests, declarations and folders", async () => {
    await mkdir(join(folder, "shared.ts"));
    const broken = "throw new Error('not to be loaded');";
    expect(
      await load({
        "receipts.mjs": "export default HANDLER;",
        "other.example.mjs": broken,
        "receipts.test.ts": broken,
        "types.d.ts": broken,
        "notes.txt": broken,
      }),
    ).toEqual({ names: ["receipts"], problem: null });
  });

  test.each([
    ["export const handler = HANDLER;", /a\.mjs: it has no default export\. Write: export default/],
    ["export default { name: 'x' };", /a\.mjs: its default export was not made by defineHandler/],
    [
      "export default await Promise.reject(new TypeError('no such host'));",
      /a\.mjs: its import failed \(TypeError: no such host\)\..*move it into run\(\)/,
    ],
    [
      'export default defineHandler({ name: "a", on: ["order.refund"], run() {} });',
      /a\.mjs: The handler "a" is wrong: "on": "order\.refund" is no kind of change\. Did you mean "order\.refunded"\?/,
    ],
    [
      'export default defineHandler({ name: "A b", on: [], run: 3, concurency: 0 });',
      /"name" must be .*; "on" names no kind of change; "run" must be a function; it has no option "concurency" \(did you mean "concurrency"\?\)/,
    ],
    [
      'export default defineHandler({ name: "a", on: ["order.paid"], from: "2025", attempts: 0, run() {} });',
      /"from" must be "now", "beginning" or a time .*; "attempts" must be at least 1/,
    ],
  ])("refuses %s, and gives the others", async (text, why) => {
    const { names, problem } = await load({ "a.mjs": text, "b.mjs": "export default HANDLER;" });
    expect(names).toEqual(["receipts"]);
    expect(problem).toMatch(/^One handler is not usable:/);
    expect(problem).toMatch(why);
  });

  test("names every file that is wrong at once, and the other file of a name that is there twice", async () => {
    const { names, problem } = await load({
      "a.mjs": "export default HANDLER;",
      "b.mjs": "export default HANDLER;",
      "c.mjs": "export {};",
    });
    expect(names).toEqual(["receipts"]);
    expect(problem).toMatch(/^2 handlers are not usable:/);
    expect(problem).toMatch(/b\.mjs: its name "receipts" is also that of .*a\.mjs/);
  });

  test("that is not there is named with its setting", async () => {
    const gone = join(folder, "gone");
    const importFile = () => Promise.resolve({});
    await expect(loadHandlers({ importFile }, [gone])).rejects.toThrow(
      /gone cannot be read \(ENOENT\)\. Check TALLYHOOK_HANDLERS/,
    );
  });
});

test("the object that a handler is given has the type of the contract, by the kinds that it asks for", () => {
  defineHandler({
    name: "one",
    on: ["order.refunded"],
    run({ order, change }) {
      expectTypeOf(order).toEqualTypeOf<Order>();
      expectTypeOf(order.total).toEqualTypeOf<number>();
      expectTypeOf(change.kind).toEqualTypeOf<"order.refunded">();
      expectTypeOf(change).toExtend<Change>();
    },
  });
  defineHandler({
    name: "two",
    on: ["order.paid", "subscription.renewed"],
    run({ order, subscription }) {
      expectTypeOf(order).toEqualTypeOf<Order | undefined>();
      if (order === undefined) expectTypeOf(subscription).toEqualTypeOf<Subscription>();
    },
  });
  // @ts-expect-error it is order.refunded
  expect(() => defineHandler({ name: "no", on: ["order.refund"], run() {} })).toThrow(/refunded/);
});

test("what another copy of the program's files has made is known for what it is", () => {
  const foreign = Object.assign(new Error("later"), {
    [Symbol.for("tallyhook.retry-later")]: true,
    afterMs: 5_000,
  });
  expect(postponementOf(foreign, 0, new Date())?.delayMs).toBe(5_000);
  expect(isMarked({ [Symbol.for("tallyhook.handler")]: true })).toBe(true);
});
