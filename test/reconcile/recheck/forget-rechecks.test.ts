import type { Knex } from "knex";
import { expect, test } from "vitest";
import { type Random, seededRandom } from "../../../src/platform/random.ts";
import { forgetRechecks } from "../../../src/parts/reconcile/recheck/rechecks.ts";
import { useTestDatabase } from "../../support/use-database.ts";
import { emptyTables } from "../../support/empty-tables.ts";

const database = useTestDatabase();
const hours = 60;
const start = Date.UTC(2026, 0, 1);
const hour = (n: number): string => new Date(start + n * 3_600_000).toISOString();
const later = new Date(start + 100 * 86_400_000);

test.each([1, 2])(
  "what is proved as of each moment stays the same when rechecks are forgotten (ledger %i)",
  async (seed) => {
    const { db } = database;
    await writeLedger(db, seededRandom(`rechecks ${seed}`));
    const before = await provedAtEachMoment(db);
    expect(new Set(before.map((each) => JSON.stringify(each))).size, "it changes").toBeGreaterThan(20);
    expect(await forgetRechecks(db, { now: later })).toBeGreaterThan(10);
    expect(await provedAtEachMoment(db)).toEqual(before);
  },
);

test("what differed, could not be read, is open or is young stays", async () => {
  const { db } = database;
  await emptyLedger(db);
  await db("reconcile.runs").insert({ run_key: "a night", kind: "nightly", t0: hour(0) });
  const { rows } = await db.raw<{ rows: { id: string }[] }>("select id from reconcile.runs");
  const given = [
    ["equal", "open_item", "settled", "equal"],
    ["lost", "not_listed", "settled", "lost_in_list"],
    ["young", "young", "settled", "equal"],
    ["refused", "open_item", "settled", "unreadable"],
    ["waiting", "open_item", "waiting", null],
  ] as const;
  for (const [id, why, state, outcome] of given) {
    const [run, at] = [rows[0]?.id, hour(0)];
    await db("reconcile.doubts").insert({
      run,
      resource: "order",
      id,
      why,
      state,
      outcome,
      due_at: at,
      noticed_at: at,
    });
  }
  expect(await forgetRechecks(db, { now: new Date() }), "it is of today").toBe(0);
  expect(await forgetRechecks(db, { now: new Date(Date.now() + 61 * 86_400_000) })).toBe(1);
  expect(await db("reconcile.doubts").orderBy("id").pluck("id")).toEqual(["lost", "refused", "waiting", "young"]);
});

async function emptyLedger(db: Knex): Promise<void> {
  await emptyTables(db, ["reconcile.runs", "reconcile.run_states", "reconcile.coverage", "reconcile.doubts"]);
}

/** Runs that end, are resumed, end early or never end, with rechecks of every kind at any time of theirs. */
async function writeLedger(db: Knex, random: Random): Promise<void> {
  await emptyLedger(db);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
  await db.transaction(async (trx) => {
    // Only so may times be given.
    await trx.raw("set local session_replication_role = replica");
    for (let run = 1; run <= 10; run++) {
      const began = Math.floor(random() * (hours - 12));
      await trx("reconcile.runs").insert({
        run_key: `run ${run}`,
        kind: pick(["nightly", "full"]),
        t0: hour(began),
        started_at: hour(began),
        state: "complete",
      });
      const { rows } = await trx.raw<{ rows: { id: string }[] }>("select max(id) as id from reconcile.runs");
      const id = rows[0]?.id;
      let at = began;
      for (let n = 0; n < 3; n++) {
        const has_ended = n > 0 && random() < 0.6;
        const state = has_ended ? "complete" : "running";
        await trx("reconcile.run_states").insert({
          run: id,
          recorded_at: hour(at),
          state,
          has_ended,
        });
        at += 1 + Math.floor(random() * 4);
      }
      for (const [slice, step] of ["window", "status", "all"].entries()) {
        const completed = hour(began + Math.floor(random() * 8));
        await trx("reconcile.coverage").insert({
          run: id,
          slice,
          step,
          resource: "order",
          path: "/orders",
          filter: "{}",
          reason: "test",
          created_before: hour(began),
          is_closed: true,
          state: "complete",
          pages: 1,
          read_at: hour(began),
          completed_at: completed,
          revoked_at: random() < 0.2 ? hour(began + 9) : null,
        });
      }
      for (let n = 0; n < 12; n++) {
        const recorded = began + random() * 3;
        const outcome = pick([
          "equal",
          "equal",
          "missing_there",
          "unreadable",
          "not concluded",
          `left to run ${run + 1}`,
        ]);
        const isOpen = random() < 0.1;
        await trx("reconcile.doubts").insert({
          run: id,
          resource: "order",
          id: `order-${n}`,
          noticed_at: hour(began),
          due_at: hour(began),
          why: pick(["open_item", "open_item", "open_item", "out_of_time", "young", "not_listed"]),
          state: isOpen ? "waiting" : "settled",
          outcome: isOpen ? null : outcome,
          recorded_at: hour(recorded),
          settled_at: isOpen ? null : hour(recorded + random() * 4),
          object_at: random() < 0.8 ? hour(random() * hours) : null,
        });
      }
    }
  });
}

/** What the reports' functions make of the ledger: now, and as of each moment. */
async function provedAtEachMoment(db: Knex): Promise<unknown[]> {
  const { rows } = await db.raw<{ rows: unknown[] }>(
    `select a.at, reports.changes_read_until(a.at) as changes,
       (select jsonb_agg(to_jsonb(h) order by h.run, h.resource, h.hole) from (
          select distinct u.* from reports.unproved_objects(a.at) u) h) as holes,
       (select jsonb_agg(to_jsonb(s) order by s.run, s.slice, s.bounds) from reports.read_slices(a.at) s) as slices
     from (select null::timestamptz as at union all
           select ?::timestamptz + n * interval '50 minutes' from generate_series(0, ?) n) a order by a.at`,
    [hour(0), hours + 10],
  );
  return rows;
}
