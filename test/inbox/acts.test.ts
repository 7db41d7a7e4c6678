import { beforeEach, expect, test } from "vitest";
import { type FoundEvents, replaying } from "../../src/parts/browse/events/acts.ts";
import { decidedOnEvents } from "../../src/core/inbox/replay-search.ts";
import type { Actor } from "../../src/app/people/audit.ts";
import { readAudit } from "../../src/app/people/audit.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { emptyInbox, progressOf, storeRow } from "./stored-events.ts";

const database = useTestDatabase();

beforeEach(() => emptyInbox(database.db));

const ann: Actor = { accountId: null, name: "Ann Lee", via: "command line", address: null };

/** Puts events back, and returns what stands in the record of it. */
async function recordedFor(wanted: readonly number[] | FoundEvents, decidedOn: string | null = null) {
  const [named, found] = "seqs" in wanted ? [[], wanted] : [wanted, null];
  const input = { seq: named.map(String) };
  await replaying.run({ db: database.db, found }, { actor: ann, input, decidedOn });
  const [newest] = await readAudit(database.db, { limit: 1 });
  return newest && { action: newest.action, subject: newest.subject, after: newest.after };
}

const dead = async (count: number): Promise<number[]> => {
  const seqs: number[] = [];
  for (let n = 0; n < count; n++) seqs.push(await storeRow(database.db, { state: "dead" }));
  return seqs;
};

const ofDead = (seqs: readonly number[]): FoundEvents => ({ filter: { state: "dead" }, seqs });

test("one event that is named is the subject of the record, however it was chosen", async () => {
  const [seq = 0] = await dead(1);
  expect(await recordedFor([seq, seq])).toEqual({
    action: "event.replayed",
    subject: { kind: "event", id: String(seq) },
    after: null,
  });
});

test("the record of several has their numbers, and of what a filter finds how much that was", async () => {
  const seqs = await dead(2);
  const several = { action: "events.replayed", subject: null };
  expect(await recordedFor(seqs)).toEqual({
    ...several,
    after: { count: 2, seqs },
  });
  const empty = await storeRow(database.db, { state: "dead", raw: null });
  expect(await recordedFor(ofDead([...seqs, empty]))).toEqual({
    ...several,
    after: { filter: { state: "dead" }, found: 3, count: 2, seqs },
  });
});

test("the record of more than 200 has their count alone", async () => {
  const seqs = await dead(201);
  const after = { filter: { state: "dead" }, found: 201, count: 201 };
  expect(await recordedFor(ofDead(seqs))).toMatchObject({ action: "events.replayed", after });
  expect((await recordedFor(ofDead(seqs)))?.after).not.toHaveProperty("seqs");
  expect((await recordedFor(ofDead(seqs.slice(1))))?.after).toHaveProperty("seqs");
});

test("a named event that is not there, has no bytes or has changed keeps all of them as they are", async () => {
  const { db } = database;
  const [seq = 0] = await dead(1);
  const empty = await storeRow(db, { state: "dead", raw: null });
  const shown = decidedOnEvents([{ seq, state: "failed", attempts: 1 }]);
  for (const [named, decidedOn, refusal] of [
    [[seq, 999_999_999], null, "unknown"],
    [[seq, empty], null, "hindered"],
    [[seq], shown, "outdated"],
    [[], null, "invalid"],
  ] as const) {
    const replay = recordedFor(named, decidedOn);
    await expect(replay).rejects.toMatchObject({ refusal });
  }
  expect((await progressOf(db, seq)).state).toBe("dead");
});
