import { readFile } from "node:fs/promises";
import { beforeAll, expect, test } from "vitest";
import { changeKinds } from "../../src/mirror/changes/kinds.ts";
import { readChanges, readableUntil } from "../../src/feed/changes.ts";
import { readConsumer } from "../../src/feed/consumers.ts";
import { storeChange } from "../feed/stored-changes.ts";
import { useTestDatabase } from "../support/use-database.ts";

const database = useTestDatabase();
let page: string;
beforeAll(async () => {
  page = await readFile(new URL("../../docs/feed.md", import.meta.url), "utf8");
});

test("the page's table has every kind of change there is, and no other", () => {
  const named = [...page.matchAll(/^\| `([a-z_.]+)`/gm)].map(([, kind]) => kind);
  expect(named).toEqual([...changeKinds]);
});

test("the page's SQL reads the feed and moves on, with no more rights than it names", async () => {
  const { db } = database;
  const blocks = [...page.matchAll(/```sql\n([\s\S]*?)```/g)].map(([, sql = ""]) => sql);
  const [history = "", grants = "", create = "", ask = "", read = "", move = ""] = blocks;
  expect(blocks).toHaveLength(6);
  await db.raw(history);
  const trx = await db.transaction();
  try {
    // The role is nobody else's: it is never committed.
    await trx.raw("create role shop");
    await trx.raw(grants);
    await trx.raw("set local role shop");
    await trx.raw(create);
    await trx.raw("reset role");
    const seq = await storeChange(trx, { recordedAt: new Date() });
    await trx.raw("set local role shop");
    const answers = await trx.raw<{ rows: [Record<string, string>] }[]>(ask);
    const [until, position] = answers.flatMap(({ rows: [row] }) => Object.values(row));
    expect(Number(until)).toBe(seq);
    const given = { position: position ?? "", until: until ?? "", next: until ?? "" };
    const { rows } = await trx.raw<{ rows: { seq: string }[] }>(read, given);
    expect(rows.map((row) => Number(row.seq))).toEqual([seq]);
    await trx.raw(move.replace(/^\s*(begin|commit);$/gm, ""), given);
    expect((await readConsumer(trx, "shop"))?.position).toBe(await readableUntil(trx));
    expect((await readChanges(trx, { after: seq, limit: 10 })).changes).toEqual([]);
  } finally {
    await trx.rollback();
  }
});
