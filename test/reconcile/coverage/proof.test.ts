import { describe, expect, test } from "vitest";
import {
  type ProvedPart,
  dayOf,
  listProofs,
  proofOf,
  provedParts,
} from "../../../src/parts/reconcile/coverage/proof.ts";
import { useWalkedService } from "../use-walked-service.ts";

const now = new Date("2026-11-22T12:00:00Z");
const at = (text: string): string => `2026-11-${text}:00.000000Z`;
const part = (run: number, from: string | null, before: string | null, isFresh = true): ProvedPart => ({
  resource: "order",
  run,
  from: from === null ? null : at(from),
  before: before === null ? null : at(before),
  readAt: new Date("2026-11-22T03:41:00Z"),
  isFresh,
});

describe("how far a list is proved", () => {
  test("is not known without a read, and is outdated where no read counts any more", () => {
    const never = { provedUntil: null, lastProved: null, isOutdated: false };
    expect(proofOf("order", [], { wasRead: false, now })).toMatchObject(never);
    const outdated = { ...never, isOutdated: true };
    expect(proofOf("order", [], { wasRead: true, now })).toMatchObject(outdated);
  });

  test("ends at the first gap, and names what is proved after it", () => {
    const parts = [part(2, "03T15:00", "22T03:41"), part(1, null, "03T14:00")];
    expect(proofOf("order", parts, { wasRead: true, now })).toEqual({
      resource: "order",
      provedUntil: new Date("2026-11-03T14:00:00Z"),
      lastProved: new Date("2026-11-22T03:41:00Z"),
      gaps: [{ resource: "order", from: at("03T14:00"), before: at("03T15:00") }],
      isOutdated: false,
      aheadMs: 0,
    });
  });

  test("is at most now, and says by how much reads are ahead of it", () => {
    const parts = [part(2, "03T14:00", "22T14:30"), part(1, null, "03T14:00")];
    expect(proofOf("order", parts, { wasRead: true, now })).toMatchObject({
      provedUntil: now,
      lastProved: now,
      aheadMs: 2.5 * 3_600_000,
    });
  });

  test("is nowhere while the beginning is not proved", () => {
    expect(proofOf("order", [part(1, "03T15:00", "22T03:41")], { wasRead: true, now })).toMatchObject({
      provedUntil: null,
      gaps: [{ from: null, before: at("03T15:00") }],
    });
  });
});

describe("a day", () => {
  const day = (parts: readonly ProvedPart[], from: string, before: string) =>
    dayOf(parts, {
      resource: "order",
      from: new Date(at(from)),
      before: new Date(at(before)),
      now,
      awaitedFrom: new Date("2026-11-22T03:41:00Z"),
    });

  test("is proved by the newest runs that leave no gap, and by no others", () => {
    const parts = [
      part(5, "03T12:00", "04T00:00"),
      part(4, "03T13:00", "03T14:00"),
      part(3, null, "03T12:00"),
      part(1, null, "10T00:00"),
    ];
    const { state, by } = day(parts, "03T00:00", "04T00:00");
    expect([state, by.map(({ run }) => run)]).toEqual(["proved", [5, 3]]);
  });

  test("of which hours are missing is proved in part; one that no read reaches is not", () => {
    const parts = [part(1, "03T12:00", "04T00:00")];
    expect(day(parts, "03T00:00", "04T00:00")).toMatchObject({ state: "part", by: [{ run: 1 }] });
    expect(day(parts, "05T00:00", "06T00:00")).toEqual({ state: "unproved", by: [] });
  });

  test("of which one moment is missing is proved in part", () => {
    const moment = { ...part(1, "03T00:00", "03T12:00"), before: "2026-11-03T12:00:00.000001Z" };
    const rest = { ...part(1, "03T12:00", "04T00:00"), from: "2026-11-03T12:00:00.000002Z" };
    expect(day([moment, rest], "03T00:00", "04T00:00").state).toBe("part");
  });

  test("that was read too long ago is outdated; of one that goes on, the next run proves the rest", () => {
    expect(day([part(1, null, "10T00:00", false)], "03T00:00", "04T00:00")).toMatchObject({
      state: "outdated",
      by: [{ run: 1 }],
    });
    expect(day([part(1, null, "22T03:41")], "22T00:00", "23T00:00").state).toBe("so_far");
    expect(day([], "22T00:00", "23T00:00").state).toBe("unproved");
    expect(day([part(1, null, "22T12:00")], "22T00:00", "23T00:00").state).toBe("so_far");
    expect(day([], "23T00:00", "24T00:00")).toEqual({ state: "ahead", by: [] });
  });
});

describe("what runs have read", () => {
  const walked = useWalkedService();

  test("is proved to the run's T0, and counts until the rotation would have read it again", async () => {
    const { db } = walked.stand.database;
    const { t0 } = await db("reconcile.runs").first("t0");
    for (const { provedUntil, gaps } of await listProofs(db, { now: new Date(), at: new Date() })) {
      expect([provedUntil, gaps]).toEqual([t0, []]);
    }
    const later = new Date(Date.now() + 40 * 86_400_000);
    expect((await listProofs(db, { now: later, at: later })).map(({ isOutdated }) => isOutdated)).toEqual([
      true,
      true,
      true,
      true,
    ]);
  });

  test("was never proved where the run that read it has not ended", async () => {
    const { db } = walked.stand.database;
    await db("reconcile.runs").update({ state: "running" });
    const lists = await listProofs(db, { now: new Date(), at: new Date() });
    expect(lists.map(({ lastProved }) => lastProved)).toEqual([null, null, null, null]);
    expect(lists.map(({ isOutdated }) => isOutdated)).toEqual([false, false, false, false]);
  });

  test("is asked for by the time of creation", async () => {
    const { db } = walked.stand.database;
    const before = new Date();
    const from2019 = { from: new Date("2019-01-01"), before: new Date("2020-01-01"), at: before };
    const past = await provedParts(db, from2019);
    expect(past.map(({ resource }) => resource)).toHaveLength(4);
    const from = new Date(Date.now() + 86_400_000);
    const ahead = { from, before: new Date(Date.now() + 2 * 86_400_000), at: before };
    expect(await provedParts(db, ahead)).toEqual([]);
  });
});
