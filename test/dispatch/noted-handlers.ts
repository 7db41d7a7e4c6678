import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Knex } from "knex";
import { expect, inject } from "vitest";
import { eventually } from "../support/eventually.ts";

/** What `tallyhook/handlers` is in a deployment. */
const definition = pathToFileURL(join(inject("image"), "src/bin/handlers.js")).href;

const kinds = ["order.created", "order.updated"];

/** Notes each change when it begins, and once it was handled. In TypeScript. */
const source = (name: string, isTransactional: boolean): string => `
import { defineHandler } from ${JSON.stringify(definition)};
export default defineHandler({
  name: "${name}",
  on: ${JSON.stringify(kinds)},
  deadlineMs: 2_000,
  attempts: 100,
  transactional: ${isTransactional},
  async run({ change, order, db, idempotencyKey }: any): Promise<void> {
    await db("own.begun").insert({ handler: "${name}", seq: change.seq });
    await new Promise((resolve) => setTimeout(resolve, 10));
    await db("own.done").insert({ handler: "${name}", seq: change.seq, id: order.id, key: idempotencyKey });
    // Some take long to end after they have written, so that they can be killed there.
    await new Promise((resolve) => setTimeout(resolve, change.seq % 8 === 0 ? 100 : 5));
  },
});
`;

/** Puts two handlers into a folder: `exact` is transactional, `plain` is not. Makes the tables in which they note. */
export async function putNotedHandlers(db: Knex, folder: string): Promise<void> {
  await db.raw(
    `create schema own;
     create table own.begun (n serial, handler text, seq bigint);
     create table own.done (n serial, handler text, seq bigint, id text, key text)`,
  );
  await writeFile(join(folder, "plain.ts"), source("plain", false));
  await writeFile(join(folder, "exact.ts"), source("exact", true));
}

/** How many attempts have begun and can be seen: those of `exact` only once they have ended. */
export const countBegun = async (db: Knex): Promise<number> =>
  Number((await db("own.begun").count({ n: "*" }).first())?.["n"]);

/** Until so many attempts have begun, and `plain` has written what is not marked done: killed now, it comes again. */
export const untilMidway = (db: Knex, begun: number) =>
  eventually(
    "handlers are midway",
    async () => {
      const { rows } = await db.raw<{ rows: [{ is_written: boolean }] }>(
        `select exists (
           select from own.done d join dispatch.runs r using (handler, seq)
           where handler = 'plain' and r.claimed_until is not null) as is_written`,
      );
      return rows[0].is_written && (await countBegun(db)) >= begun;
    },
    { everyMs: 5, withinMs: 180_000 },
  );

interface Told {
  seq: string;
  id: string;
}

/**
 * Of each object, `exact` has handled every change once and in order, `plain` at least once. Repeats follow at once and
 * have the same key, which no other change has. Returns how many changes there were, and how many repeats.
 */
export async function expectAllHandled(db: Knex): Promise<{ changes: number; repeats: number }> {
  /** Repeats that follow at once count once. */
  const ordered = (rows: readonly Told[]) => {
    const byId = new Map<string, string[]>();
    for (const { id, seq } of rows) {
      const seqs = byId.get(id) ?? [];
      if (seqs.at(-1) !== seq) seqs.push(seq);
      byId.set(id, seqs);
    }
    return byId;
  };
  const told = await db("feed.changes").whereIn("kind", kinds).orderBy("seq").select<Told[]>("seq", "id");
  const doneBy = (handler: string) =>
    db("own.done").where({ handler }).orderBy("n").select<(Told & { key: string })[]>("seq", "id", "key");
  const [exact, plain] = [await doneBy("exact"), await doneBy("plain")];
  expect(exact).toHaveLength(told.length);
  expect(ordered(exact)).toEqual(ordered(told));
  expect(ordered(plain)).toEqual(ordered(told));
  const keys = new Map(plain.map(({ seq, key }) => [seq, key]));
  expect(plain.filter(({ seq, key }) => keys.get(seq) !== key)).toEqual([]);
  expect(new Set(keys.values()).size).toBe(told.length);
  return { changes: told.length, repeats: plain.length - told.length };
}
