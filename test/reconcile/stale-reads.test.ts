import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { checkProof } from "../../src/parts/reports/check-reports.ts";
import { listProofs } from "../../src/parts/reconcile/coverage/proof.ts";
import type { ReconcileResult } from "../../src/parts/reconcile/runs/finish-run.ts";
import { dayMs } from "../../src/parts/reconcile/settings.ts";
import { readProof } from "../../src/parts/reports/base/report-facts.ts";
import { type HostileService, startHostileService } from "./hostile-service.ts";
import { type ReconcileStand, createReconcileStand } from "./reconcile-stand.ts";

let service: HostileService;
let stand: ReconcileStand;
let db: ReconcileStand["database"]["db"];

beforeEach(async () => {
  service = await startHostileService();
  stand = await createReconcileStand(service.url);
  ({ db } = stand.database);
});
afterEach(async () => {
  await stand.close();
  await service.close();
});

const nightly = () => stand.run({ kind: "nightly" });

/** As if the reads of some lists were so many days ago, by the clocks of the service and of the database. */
async function age(days: number, resources: readonly string[]): Promise<void> {
  await db.raw(
    `update reconcile.coverage set read_at = read_at - cast(:days as float8) * interval '1 day',
       completed_at = completed_at - cast(:days as float8) * interval '1 day'
     where resource = any(:resources)`,
    { days, resources },
  );
}

/** Whether run, report, doctor and page say that everything before the run's T0 is proved. */
async function told({ run, complete }: ReconcileResult): Promise<Record<string, boolean>> {
  const t0 = run.t0.toISOString();
  const { verdict } = await readProof(db, { fromUtc: t0, toUtc: t0 }, null);
  const { status } = await checkProof({ db: async () => db });
  const proofs = await listProofs(db, { now: run.t0, at: new Date() });
  return {
    run: complete,
    report: verdict === "PASS",
    doctor: status === "ok",
    page: proofs.every(({ provedUntil }) => provedUntil?.toISOString() === t0),
  };
}
const agreed = { run: true, report: true, doctor: true, page: true };

const planned = (run: number) =>
  db("reconcile.coverage").where({ run }).orderBy("slice").select("step", "resource", "created_from", "created_before");

describe("what was read too long ago to count", () => {
  test.each([
    { resources: ["subscription"] },
    { resources: ["order"] },
    { resources: ["customer", "order", "transaction", "subscription"] },
  ])("is read first by the next night ($resources), and then all say that it is proved", async ({ resources }) => {
    await stand.run();
    await age(40, resources);
    const result = await nightly();
    expect(await told(result)).toEqual(agreed);
    const slices = await planned(result.run.id);
    expect(slices.slice(0, resources.length).map(({ step, resource }) => [step, resource])).toEqual(
      resources.map((resource) => ["stale", resource]),
    );
    // The cycle has begun again: nothing is left for the night after.
    const next = await planned((await nightly()).run.id);
    expect(next.filter(({ step }) => step === "stale")).toEqual([]);
  });

  test("is read as far as it has gone stale, and what goes stale before the next night with it", async () => {
    const { run } = await stand.run();
    const created = (service.objects["orders"] ?? []).map((order) => order.created_at).sort();
    const middle = new Date(created[created.length / 2] ?? "");
    const slice = { run: run.id, resource: "order" };
    const [whole] = await db("reconcile.coverage").where(slice).select("*");
    await db("reconcile.coverage").where(slice).update({ created_before: middle });
    await age(30.5, ["order"]);
    await db("reconcile.coverage").insert({
      ...whole,
      filter: JSON.stringify(whole.filter),
      checkpoint: JSON.stringify(whole.checkpoint),
      tally: JSON.stringify(whole.tally),
      slice: 100,
      created_from: middle,
      closes_cycle: false,
    });
    const result = await nightly();
    expect(await told(result)).toEqual(agreed);
    const [first, second] = await planned(result.run.id);
    expect(first).toEqual({
      step: "stale",
      resource: "order",
      created_from: null,
      created_before: middle,
    });
    expect(second?.step).toBe("window");
  });
});

test("a service whose clock is behind this machine's by more than the rotation can be proved", async () => {
  service.quirks = { skewMs: -40 * dayMs };
  expect(await told(await stand.run())).toEqual(agreed);
  expect(await told(await nightly())).toEqual(agreed);
});

test("a service whose clock is ahead of this machine's makes no read count for longer", async () => {
  service.quirks = { skewMs: 400 * dayMs };
  await stand.run();
  await db.raw("update reconcile.coverage set completed_at = completed_at - interval '40 days'");
  const proofs = await listProofs(db, { now: new Date(), at: new Date() });
  expect(proofs.every(({ isOutdated }) => isOutdated)).toBe(true);
});
