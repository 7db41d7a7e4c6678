import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { applySnapshots } from "../../src/core/mirror/write/apply.ts";
import { type Random, seededRandom } from "../../src/platform/random.ts";
import { at, sampleOrder, shown } from "../mirror/samples.ts";
import { type Psql, psqlAvailable, startPsql } from "../support/psql.ts";
import { type TestDatabase, createTestDatabase } from "../support/database.ts";

const writers = 8;
const [wanted, ordersAtOnce] = [inject("isTorture") ? 100_000 : 10_000, 25];

let database: TestDatabase;
/** The blocks of SQL. */
let page: readonly string[];
beforeAll(async () => {
  database = await createTestDatabase({ poolMax: writers + 1 });
  const text = await readFile(new URL("../../docs/feed.md", import.meta.url), "utf8");
  const [, section = ""] = text.split("\n## A reader in another language\n");
  page = [...section.matchAll(/```sql\n([\s\S]*?)```/g)].map(([, sql = ""]) => sql);
});
afterAll(() => database.destroy());

/** One round of docs/feed.md. What it reads goes into a table, in the transaction that moves the position. */
function roundOfPage(): string {
  const [, , round = ""] = page;
  const [begin, read, act, done, commit] = round.trim().split("\n");
  expect([begin, act, commit]).toEqual(["begin;", "-- what you write", "commit;"]);
  return `
    ${begin}
    create temporary table page on commit drop as ${read}
    insert into shop.seen select seq, id, kind from page;
    select coalesce(max(seq)::text, 'null') as last from page \\gset
    ${done?.replace(/;$/, "")} \\g /dev/null
    select position from feed.consumers where name = 'shop';
    ${commit}`;
}

/** What everybody writes first, and what the feed is not read by. */
const naiveRound = `
    select coalesce(max(seq), 0) as position from naive.seen \\gset
    insert into naive.seen
    select seq, id, kind from feed.changes where seq > :position order by seq limit 500;
    \\echo :position`;

interface Opened {
  changes: number;
  end(): Promise<void>;
}

/** Writes orders in a transaction that stays open. `end` commits it, or rolls it back, which it does to one of ten. */
async function openWrite(name: string, random: Random): Promise<Opened> {
  const trx = await database.db.transaction();
  const orders = Array.from({ length: ordersAtOnce }, (_, n) =>
    shown("order", sampleOrder({ id: `order-${name}-${n}` }), at(0)),
  );
  await applySnapshots(trx, orders);
  const isKept = random() >= 0.1;
  return {
    changes: isKept ? 2 * ordersAtOnce : 0,
    end: async () => void (await (isKept ? trx.commit() : trx.rollback())),
  };
}

/** Each writer has a transaction open at any time. Of the eight, one by chance ends next. */
async function writeOutOfOrder(): Promise<void> {
  const random = seededRandom("out of order");
  let [written, transactions] = [0, 0];
  const open = () => openWrite(String(++transactions), random);
  const opened = await Promise.all(Array.from({ length: writers }, open));
  while (written < wanted) {
    const chosen = Math.floor(random() * writers);
    const { changes, end } = opened[chosen]!;
    await end();
    written += changes;
    opened[chosen] = await open();
  }
  for (const { end } of opened) await end();
}

/** Runs rounds, until one that began when all was written has come no further than the one before. */
async function readAll(psql: Psql, round: string, isWritten: () => boolean): Promise<void> {
  let position = "";
  for (;;) {
    const isLast = isWritten();
    const [reached = ""] = await psql.run(round);
    if (isLast && reached === position) return;
    position = reached;
  }
}

test.skipIf(!psqlAvailable)(
  `the page's SQL, run by two psql under one name, misses and doubles none of ${wanted.toLocaleString("en")} changes that ${writers} writers commit out of order, and reading by the highest number misses some`,
  async () => {
    const { db, directUrl } = database;
    const role = `shop_${randomBytes(4).toString("hex")}`;
    const [grants = "", create = ""] = page;
    await db.raw(`create role ${role}`);
    try {
      await db.raw(grants.replaceAll("to shop;", `to ${role};`));
      for (const schema of ["shop", "naive"]) {
        await db.raw(`create schema ${schema} authorization ${role};
                      create table ${schema}.seen (seq bigint primary key, id text, kind text);
                      alter table ${schema}.seen owner to ${role}`);
      }
      const [reader, second, naive] = [1, 2, 3].map(() => startPsql(directUrl)) as [Psql, Psql, Psql];
      for (const psql of [reader, second, naive]) await psql.run(`set session authorization ${role};`);
      await reader.run(create);
      const round = roundOfPage();
      let isWritten = false;
      const writing = writeOutOfOrder().finally(() => (isWritten = true));
      await Promise.all([
        writing,
        readAll(reader, round, () => isWritten),
        readAll(second, round, () => isWritten),
        readAll(naive, naiveRound, () => isWritten),
      ]);
      await Promise.all([reader.close(), second.close(), naive.close()]);

      const { rows } = await db.raw<{ rows: [Record<"told" | "missed" | "naive", number>] }>(
        `select count(*)::int as told,
                count(*) filter (where s.seq is null)::int as missed,
                count(*) filter (where n.seq is null)::int as naive
         from feed.changes c left join shop.seen s using (seq) left join naive.seen n using (seq)`,
      );
      const { told, missed, naive: missedByHighest } = rows[0];
      expect(told).toBeGreaterThanOrEqual(wanted);
      expect(missed).toBe(0);
      expect(missedByHighest).toBeGreaterThan(0);
    } finally {
      await db.raw(`drop owned by ${role} cascade; drop role ${role}`);
    }
  },
  600_000,
);
