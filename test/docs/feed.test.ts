import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { beforeAll, expect, test } from "vitest";
import { changeKinds } from "../../src/core/mirror/changes/kinds.ts";
import { readConsumer } from "../../src/parts/delivery/consumers.ts";
import { storeChange } from "../feed/stored-changes.ts";
import { withServer } from "../support/server-commands.ts";
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
  const { db, directUrl } = database;
  const blocks = [...page.matchAll(/```sql\n([\s\S]*?)```/g)].map(([, sql = ""]) => sql);
  const [history = "", grants = "", create = "", round = ""] = blocks;
  expect(blocks).toHaveLength(4);
  await db.raw(history);
  const role = `shop_${randomBytes(4).toString("hex")}`;
  await db.raw(`create role ${role}`);
  try {
    await db.raw(grants.replaceAll("to shop;", `to ${role};`));
    await withServer(directUrl, async (client) => {
      /** One round, statement by statement. Returns what was read. */
      async function readRound(): Promise<number[]> {
        const [begin = "", read = "", act, done = "", commit = ""] = round.trim().split("\n");
        expect([begin, act, commit]).toEqual(["begin;", "-- what you write", "commit;"]);
        await client.query(begin);
        const { rows } = await client.query<{ seq: string }>(read);
        await client.query(done.replace(":last", "$1"), [rows.at(-1)?.seq ?? null]);
        await client.query(commit);
        return rows.map(({ seq }) => Number(seq));
      }
      await client.query(`set session authorization ${role}`);
      await client.query(create);
      const recordedAt = new Date();
      const stored = [await storeChange(db, { recordedAt }), await storeChange(db, { recordedAt })];
      expect(await readRound()).toEqual(stored);
      expect(await readRound()).toEqual([]);
      expect((await readConsumer(db, "shop"))?.position).toBe(stored.at(-1));
    });
  } finally {
    await db.raw(`drop owned by ${role}; drop role ${role}`);
  }
});
