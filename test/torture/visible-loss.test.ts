import type { Knex } from "knex";
import { afterAll, expect, test } from "vitest";
import { runCrashes } from "../e2e/crash-run.ts";
import { killPrograms } from "../e2e/program.ts";

afterAll(killPrograms);

/**
 * The server's setting alone does not do it: the inbox' connections turn `synchronous_commit` on. What a transaction
 * sets for itself wins.
 */
async function commitEventsTooEarly(db: Knex): Promise<void> {
  await db.raw(`create function inbox.commit_too_early() returns trigger language plpgsql as
    $$ begin perform set_config('synchronous_commit', 'off', true); return null; end $$`);
  await db.raw(`create trigger commits_too_early after insert on inbox.receipts
    for each statement execute function inbox.commit_too_early()`);
}

/**
 * The proof that the others prove something: without `synchronous_commit` a commit is answered before its log leaves
 * the server's memory, and the same harness has to see what a crash then takes with it.
 */
test("a database that promises too much is found out", async () => {
  const { audit, ...numbers } = await runCrashes({
    seed: process.env["TORTURE_SEED"] ?? "torture",
    kills: { receiver: 0, worker: 0, postgres: 5, backend: 0 },
    // For the worker: a commit of its own that waits would write the log of the events before it as well.
    settings: { synchronous_commit: "off" },
    prepare: commitEventsTooEarly,
  });
  console.log(JSON.stringify({ synchronousCommit: "off", ...numbers, missing: audit.missing.length }));
  expect(audit.missing.length).toBeGreaterThan(0);
});
