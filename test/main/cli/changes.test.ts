import { PassThrough } from "node:stream";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { type Change, readableUntil } from "../../../src/core/mirror/changes/read-changes.ts";
import { createConsumer, listConsumers } from "../../../src/parts/delivery/consumers.ts";
import { followChanges, registerChanges } from "../../../src/parts/delivery/cli/changes.ts";
import type { CliContext } from "../../../src/app/cli/context.ts";
import { storeChange } from "../../feed/stored-changes.ts";
import { applySnapshots } from "../../../src/core/mirror/write/apply.ts";
import { emptyMirror } from "../../mirror/copies.ts";
import { apply, at, sampleEntry, sampleOrder, shown } from "../../mirror/samples.ts";
import { eventually } from "../../support/eventually.ts";
import { useTestDatabase } from "../../support/use-database.ts";
import { runCommand } from "./command-line.ts";

const database = useTestDatabase();
beforeEach(async () => {
  await emptyMirror(database.db);
  await database.db("feed.consumers").delete();
});

const orderAt = (id: string, seconds: number, fields = {}) =>
  shown("order", sampleOrder({ id, updated_at: at(seconds), ...fields }), at(seconds));

const run = async (...args: string[]) => {
  const { out, err, error } = await runCommand(registerChanges, ["changes", ...args], {
    env: database.environment,
  });
  return { lines: out.split("\n").filter((line) => line !== ""), err, error };
};
const jsonOf = async (...args: string[]) => {
  const { lines, error } = await run("--json", ...args);
  expect(error).toBeNull();
  return lines.map((line) => JSON.parse(line) as { seq: number; id: string; kind: string });
};

describe("tallyhook changes", () => {
  test("prints the newest changes, the oldest of them first, with money in the currency's units", async () => {
    await apply(database.db, orderAt("order-1", 0));
    const entries = [sampleEntry(), sampleEntry({ id: "refund-1", type: "refund", amount: 300, updated_at: at(10) })];
    const refunded = { status: "partially_refunded", transactions: entries };
    await apply(database.db, orderAt("order-1", 10, refunded));
    const { lines } = await run("order-1", "--limit", "2");
    expect(lines).toHaveLength(2);
    expect(lines[0]).toMatch(/^\S+Z +\d+ {2}order\.paid +order order-1 {2}→ succeeded {2}/);
    expect(lines[1]).toMatch(/order\.refunded +order order-1 {2}succeeded → partially_refunded {2}3\.00 USD {2}/);
  });

  test("says that a change came late", async () => {
    await apply(database.db, orderAt("order-1", 20, { status: "refunded" }));
    await apply(database.db, orderAt("order-1", 10, { status: "chargeback" }));
    const { lines } = await run("--kind", "order.disputed");
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(/ {2}late$/);
  });

  test("begins after a number, at a time, or at the beginning, and says how to read on", async () => {
    const { db } = database;
    const times = [0, 10, 20].map((minutes) => new Date(Date.UTC(2026, 10, 1, 0, minutes)));
    const seqs: number[] = [];
    for (const recordedAt of times) seqs.push(await storeChange(db, { recordedAt }));
    const read = async (...args: string[]) => (await jsonOf(...args)).map(({ seq }) => seq);
    expect(await read("--since", "beginning")).toEqual(seqs);
    expect(await read("--since", String(seqs[0]))).toEqual(seqs.slice(1));
    expect(await read("--since", "2026-11-01T00:10:00Z")).toEqual(seqs.slice(1));
    expect(await read("--since", "2026-11-01T00:10:01Z")).toEqual(seqs.slice(2));
    const { err } = await run("--since", "beginning", "--limit", "2");
    expect(err).toContain(`--since ${seqs[1]}`);
  });

  test("prints only the kinds, the resource and the object that are asked for", async () => {
    await apply(database.db, orderAt("order-1", 0), orderAt("order-2", 0));
    const read = async (...args: string[]) => (await jsonOf(...args)).map(({ id, kind }) => `${id} ${kind}`);
    expect(await read("--kind", "order.paid")).toEqual(["order-1 order.paid", "order-2 order.paid"]);
    expect(await read("order-2", "--kind", "order.created,order.paid")).toEqual([
      "order-2 order.created",
      "order-2 order.paid",
    ]);
    expect(await read("--resource", "subscription")).toEqual([]);
  });

  test("a kind that does not exist gets the nearest name", async () => {
    const { err } = await run("--kind", "order.refundd");
    expect(err).toContain('Did you mean "order.refunded"?');
  });

  test("an id with control characters cannot speak to the terminal", async () => {
    await storeChange(database.db, { recordedAt: new Date(), id: "a\u001b[31mb" });
    const { lines } = await run();
    expect(lines.join("")).toContain("a\ufffd[31mb");
  });
});

describe("tallyhook changes --follow", () => {
  const following: { stop(): Promise<void> }[] = [];
  afterEach(async () => {
    for (const each of following.splice(0)) await each.stop();
  });

  function follow(options: Partial<Parameters<typeof followChanges>[2]> = {}) {
    const [stdout, stderr] = [new PassThrough(), new PassThrough()];
    const stop = new AbortController();
    let text = "";
    stdout.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
    const done = followChanges({ stdout, stderr } as unknown as Pick<CliContext, "stdout" | "stderr">, database.db, {
      filter: {},
      lineOf: ({ seq }: Change) => String(seq),
      signal: stop.signal,
      ...options,
    });
    following.push({
      async stop() {
        stop.abort();
        await done;
      },
    });
    return {
      printed: (expected: number[]) =>
        eventually(`it prints ${expected.join(", ")}`, () => text.trim().split("\n").join() === expected.join(), {
          withinMs: 60_000,
        }),
    };
  }

  const change = () => storeChange(database.db, { recordedAt: new Date() });

  test("prints the newest changes and then each that comes", async () => {
    const old = [await change(), await change(), await change()];
    const { printed } = follow({ limit: 2 });
    await printed(old.slice(1));
    await printed([...old.slice(1), await change()]);
  });

  test("prints all since a number, and then each that comes", async () => {
    const old = [await change(), await change(), await change()];
    const { printed } = follow({ since: { after: old[0] ?? 0 } });
    await printed([...old.slice(1), await change()]);
  });

  test("prints a change that is committed after one with a higher number", async () => {
    const { db } = database;
    const slow = await db.transaction();
    onTestFinished(async () => void (await slow.rollback()));
    const after = await readableUntil(db);
    const { printed } = follow({ since: { after }, filter: { kinds: ["order.created"] } });
    await applySnapshots(slow, [orderAt("order-slow", 0)]);
    await apply(db, orderAt("order-fast", 0));
    await slow.commit();
    const seqs = await db("feed.changes").where("kind", "order.created").orderBy("seq").pluck("seq");
    await printed(seqs.map(Number));
  });
});

describe("tallyhook changes consumers", () => {
  test("lists the consumers of the feed and their positions behind", async () => {
    const { db } = database;
    await createConsumer(db, "receipts", "now");
    await storeChange(db, { recordedAt: new Date(Date.now() - 2 * 3_600_000) });
    await createConsumer(db, "ready", "now");
    const { lines } = await run("consumers");
    expect(lines.find((line) => line.includes("receipts"))).toContain("2 hours");
    expect(lines.find((line) => line.includes("ready"))).toMatch(/ {2}- {2}/);
    const { lines: json } = await run("consumers", "list", "--json");
    expect(JSON.parse(json.join(""))).toMatchObject({
      consumers: [{ name: "receipts" }, { name: "ready", unread_since: null }],
    });
  });

  test("removes one, and names the nearest where there is none", async () => {
    const { db } = database;
    await createConsumer(db, "receipts", "now");
    const wrong = await run("consumers", "remove", "recepts", "--yes");
    expect(String(wrong.error)).toContain('Did you mean "receipts"?');
    expect((await run("consumers", "remove", "receipts", "--yes")).error).toBeNull();
    expect(await listConsumers(db)).toEqual([]);
  });
});
