import { appendFile, cp, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Knex } from "knex";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { createDatabase } from "../../../src/platform/postgres/pool.ts";
import { seededRandom } from "../../../src/platform/random.ts";
import { audit, faultless } from "../../e2e/audit.ts";
import { layOutDeployment, webhookSecret } from "../../e2e/deployment.ts";
import { createHistory } from "../../e2e/history.ts";
import { storedAreSettled } from "../../e2e/inbox-progress.ts";
import { killPrograms, runTallyhook } from "../../e2e/program.ts";
import { startSender } from "../../e2e/sender.ts";
import { type OwnServer, startOwnServer } from "../../support/own-server.ts";

/** A migration waits half a second for a lock; what queues behind it may wait for its short transaction as well. */
const longestLockWaitMs = 2_500;

let server: OwnServer;
let db: Knex;
let nextRelease: string;

beforeAll(async () => {
  [server, nextRelease] = await Promise.all([startOwnServer(), layOutNextRelease()]);
  db = createDatabase({ url: server.url, poolMax: 4, applicationName: "tallyhook test" });
});
afterAll(async () => {
  await killPrograms();
  await db.destroy();
  await server.destroy();
  await rm(nextRelease, { recursive: true, force: true });
});

/** This program, and one migration of each kind on the busiest tables, and another text of a view. */
async function layOutNextRelease(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "tallyhook-next-"));
  await cp(inject("image"), folder, { recursive: true, verbatimSymlinks: true });
  const migration = (name: string, text: string) => writeFile(join(folder, "dist", "migrations", name), text);
  await migration(
    "9001_expand.sql",
    `alter table inbox.progress add column torture_note text, alter column torture_note set default 'new';
     alter table inbox.receipts add column torture_note text not null default 'new';
     alter table mirror.orders add column torture_note text;
     alter table mirror.orders add constraint orders_torture check (torture_note is not null) not valid;
     alter table mirror.orders drop constraint orders_torture;\n`,
  );
  await migration(
    "9002_fill.sql",
    `-- online
create index concurrently if not exists versions_torture on mirror.versions (recorded_at);
-- repeat
update inbox.progress set torture_note = 'filled' where seq in (
  select seq from inbox.progress where torture_note is null and state = 'applied' order by seq limit 200);
create index concurrently if not exists orders_torture on mirror.orders (torture_note);\n`,
  );
  await appendFile(join(folder, "dist", "src", "inbox", "events.sql"), "\n-- Another text.\n");
  return folder;
}

test("a release replaces another under load: nothing acknowledged is lost or doubled, nobody waits long for a lock", async () => {
  const program = join(nextRelease, "src", "bin", "tallyhook.js");
  const history = createHistory(seededRandom("rolling upgrade"));
  const former = await layOutDeployment({ databaseUrl: server.url });
  const next = await layOutDeployment({ databaseUrl: server.url, program });
  const formerPrograms = [await former.startReceiver(), await former.startWorker()];
  const send = (url: string, seed: string) =>
    startSender({ history, random: seededRandom(seed) }, { url, secret: webhookSecret, eventsPerSecond: 100 });
  const toFormer = send(former.webhooksUrl, "former");
  const waits = watchLockWaits();
  await toFormer.whenAcknowledged(200, 60_000);

  // The rule of today: first the migration, then the workers.
  const early = runTallyhook(["worker"], next.environment, undefined, program);
  expect(await early.exited).toMatchObject({ code: 2 });
  expect(early.output()).toContain("9001_expand");

  const migrate = runTallyhook(["migrate", "--wait", "5"], next.environment, undefined, program);
  const report = createDatabase({ url: server.url, poolMax: 1, applicationName: "a long report" });
  // It may come after the first statements: the migration then waits for the last lock.
  await report.transaction(async (trx) => {
    await trx.raw("select count(*) from mirror.orders, (select count(*) from inbox.receipts) r");
    await migrate.printed("a long report", 60_000);
    await toFormer.whenAcknowledged(300, 60_000);
  });
  await report.destroy();
  // Updates of the batches go on under it.
  expect(await migrate.exited).toMatchObject({ code: 0 });
  expect(migrate.output()).toContain("Migrated: 9001_expand, 9002_fill.");

  // An old receiver that is killed now comes back, beside the schema of the new version.
  await formerPrograms[0]?.kill();
  formerPrograms[0] = await former.startReceiver();
  const nextPrograms = [await next.startWorker(), await next.startReceiver()];
  const toNext = send(next.webhooksUrl, "next");
  await Promise.all([toFormer.whenAcknowledged(200, 60_000), toNext.whenAcknowledged(200, 60_000)]);
  await toFormer.finish(60_000);
  for (const each of formerPrograms) expect(await each.stop()).toMatchObject({ code: 0 });
  await toNext.whenAcknowledged(200, 60_000);
  await toNext.finish(60_000);
  await storedAreSettled(db);
  const longestWaitMs = await waits.stop();

  const acknowledged = new Map([...toFormer.acknowledged, ...toNext.acknowledged]);
  console.log(
    JSON.stringify({
      acknowledged: acknowledged.size,
      refused503: toFormer.counts.refused503 + toNext.counts.refused503,
      longestWaitMs,
      slowestAnswerMs: Math.round(Math.max(toFormer.counts.slowestAnswerMs, toNext.counts.slowestAnswerMs)),
    }),
  );
  expect(await audit(db, acknowledged, history.model)).toEqual(faultless);
  expect(longestWaitMs).toBeLessThan(longestLockWaitMs);
  for (const each of nextPrograms) expect(await each.stop()).toMatchObject({ code: 0 });
}, 600_000);

/** Looks at what the inbox' and the workers' sessions wait for, as the server's clock tells it. */
function watchLockWaits(): { stop(): Promise<number> } {
  let isStopped = false;
  let longestMs = 0;
  const watching = (async () => {
    while (!isStopped) {
      const { rows } = await db.raw<{ rows: { ms: number | null }[] }>(
        `select max(extract(epoch from clock_timestamp() - l.waitstart) * 1000)::float8 as ms
         from pg_locks l join pg_stat_activity a on a.pid = l.pid
         where not l.granted and l.locktype = 'relation'
           and a.application_name in ('tallyhook inbox', 'tallyhook receiver', 'tallyhook worker')`,
      );
      longestMs = Math.max(longestMs, rows[0]?.ms ?? 0);
      await sleep(20);
    }
  })();
  return {
    async stop() {
      isStopped = true;
      await watching;
      return Math.round(longestMs);
    },
  };
}
