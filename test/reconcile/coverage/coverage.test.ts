import { describe, expect, test } from "vitest";
import {
  type ReadInterval,
  computeCoverage,
  contiguousUntil,
  gapsOf,
  readIntervals,
} from "../../../src/parts/reconcile/coverage/coverage.ts";
import { advanceSlice, pendingSlices } from "../../../src/parts/reconcile/coverage/ledger.ts";
import { rotationState } from "../../../src/parts/reconcile/plan.ts";
import { useWalkedService } from "../use-walked-service.ts";

const orders = (from: string | null, before: string | null): ReadInterval => ({
  resource: "order",
  from,
  before,
});

describe("gaps", () => {
  const until = { from: null, until: "2025-05" };

  test("nothing read is one gap", () => {
    expect(gapsOf([], "order", until)).toEqual([{ resource: "order", from: null, before: "2025-05" }]);
  });

  test("intervals that touch or overlap, in any order, leave none", () => {
    const read = [orders("2025-03", "2025-06"), orders(null, "2025-02"), orders("2025-02", "2025-04")];
    expect(gapsOf(read, "order", until)).toEqual([]);
  });

  test("an open end covers everything after it", () => {
    expect(gapsOf([orders(null, null)], "order", until)).toEqual([]);
  });

  test("every hole is named", () => {
    const read = [orders(null, "2025-01"), orders("2025-02", "2025-03"), orders("2025-04", "2025-05")];
    expect(gapsOf(read, "order", until)).toEqual([
      { resource: "order", from: "2025-01", before: "2025-02" },
      { resource: "order", from: "2025-03", before: "2025-04" },
    ]);
  });

  test("what was read of later times changes nothing", () => {
    const read = [orders(null, "2025-01"), orders("2025-06", "2025-07")];
    expect(gapsOf(read, "order", until)).toEqual([{ resource: "order", from: "2025-01", before: "2025-05" }]);
  });

  test("what another resource read counts for nothing", () => {
    const { complete, gaps } = computeCoverage([orders(null, null)], until);
    expect(complete).toBe(false);
    expect(gaps.map(({ resource }) => resource)).toEqual(["customer", "transaction", "subscription"]);
  });

  test("contiguous coverage ends at the first hole", () => {
    const read = [orders(null, "2025-01"), orders("2025-02", "2025-05")];
    expect(contiguousUntil(read, "order", "2025-05")).toBe("2025-01");
    expect(contiguousUntil([orders("2025-01", "2025-05")], "order", "2025-05")).toBeNull();
  });
});

describe("a run's answer", () => {
  const walked = useWalkedService();

  const nightly = () => walked.stand.run({ kind: "nightly" });

  const findLast = async (): Promise<{ id: number }> => {
    const row = await walked.stand.database.db("reconcile.runs").max("id as id").first();
    return { id: Number(row?.["id"]) };
  };

  test("is complete over what earlier runs read", async () => {
    expect(await nightly()).toMatchObject({ complete: true, coverage: { gaps: [] } });
  });

  test.each([
    ["was removed", "delete from reconcile.coverage where resource = 'order'"],
    ["was never read to its end", "update reconcile.coverage set state = 'pending' where resource = 'order'"],
    ["failed", "update reconcile.coverage set state = 'failed' where resource = 'order'"],
    ["lacks its pages", "update reconcile.coverage set pages = 0 where resource = 'order'"],
    [
      "was cut short",
      "update reconcile.coverage set created_before = created_before - interval '1 hour' where resource = 'order'",
    ],
  ])("counts no slice that %s", async (_, spoil) => {
    const { db } = walked.stand.database;
    const range = { from: null, until: new Date().toISOString().slice(0, 10) };
    expect(computeCoverage(await readIntervals(db), range).complete).toBe(true);
    await db.raw(spoil);
    const until = new Date(Date.now() - 30 * 60_000).toISOString();
    const { complete, gaps } = computeCoverage(await readIntervals(db), { from: null, until });
    expect(complete).toBe(false);
    expect(gaps).toMatchObject([{ resource: "order" }]);
  });

  test("is given once for a key", async () => {
    const runKey = "nightly:once";
    const { run } = await walked.stand.run({ kind: "nightly", runKey });
    await expect(walked.stand.run({ kind: "nightly", runKey })).rejects.toThrow("repeated");
    const { db } = walked.stand.database;
    expect(await db("reconcile.runs").max("id as last").first()).toEqual({ last: String(run.id) });
  });

  test("is given to one of those who ask at once, whoever it is", async () => {
    const asked = await Promise.allSettled([walked.stand.run(), walked.stand.run(), walked.stand.run()]);
    const reasons = asked.flatMap((one) => (one.status === "rejected" ? [String(one.reason)] : []));
    expect(reasons).toEqual(["Error: the run was busy", "Error: the run was busy"]);
  });

  test("abandons a run of another kind that somebody left", async () => {
    const { db } = walked.stand.database;
    await db.raw("update reconcile.runs set state = 'running'");
    await nightly();
    expect(await db("reconcile.runs").orderBy("id").pluck("state")).toEqual(["abandoned", "complete"]);
  });

  test("is not moved on by two who read the same slice", async () => {
    const { db } = walked.stand.database;
    await db.raw("update reconcile.coverage set state = 'pending', pages = 3");
    const [slice] = await pendingSlices(db, (await findLast()).id);
    if (slice === undefined) throw new TypeError("no slice is pending");
    const to = { ...slice, pages: 4 };
    await expect(advanceSlice(db, slice, { pages: 2 }, to)).rejects.toThrow("is no longer at page");
    await advanceSlice(db, slice, { pages: 3 }, to);
    await expect(advanceSlice(db, slice, { pages: 3 }, to)).rejects.toThrow("is no longer at page");
  });

  test("counts no slice of a run that still doubts", async () => {
    const { db } = walked.stand.database;
    await db.raw(
      `insert into reconcile.doubts (run, resource, id, why, noticed_at, due_at)
       select max(id), 'order', 'order-0001', 'not_listed', now(), now() from reconcile.runs`,
    );
    expect(await readIntervals(db)).toEqual([]);
    // Nor does the rotation go on behind what it has not proved.
    expect(await rotationState(db, "order")).toBeNull();
  });
});
