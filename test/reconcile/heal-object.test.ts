import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { defaultEnvelopePaths } from "../../src/core/contract/event-envelope.ts";
import { replayEvents } from "../../src/core/inbox/retention.ts";
import { applyBatch } from "../../src/core/worker/apply-batch.ts";
import { applyHeal, proposeHeal } from "../../src/parts/reconcile/heal-object.ts";
import { storeEvent } from "../worker/worker-stand.ts";
import { type HostileService, startHostileService } from "./hostile-service.ts";
import { type ReconcileStand, createReconcileStand } from "./reconcile-stand.ts";
import { emptyTables } from "../support/empty-tables.ts";

const never = "9999-01-01T00:00:00.000Z";
const decision = { by: "ann", reason: "dated 9999 by a fault of the service" };
let service: HostileService;
let stand: ReconcileStand;
let db: ReconcileStand["database"]["db"];

beforeEach(async () => {
  service = await startHostileService(5);
  stand = await createReconcileStand(service.url);
  ({ db } = stand.database);
  await stand.run();
});
afterEach(async () => {
  await stand.close();
  await service.close();
});

const order = (): Record<string, unknown> & { id: string } => service.objects["orders"]?.[3] ?? { id: "" };
const row = () => db("mirror.orders").where("id", order().id).first();
const openAlerts = () => db("alerts.alerts").whereNot("state", "resolved").pluck("key");
/** Later than what wrote the rows: the service's `Date` has whole seconds. */
const later = () => void (service.quirks = { ...service.quirks, skewMs: 5_000 });
const heal = async () => {
  const proposal = await proposeHeal(stand.deps, { resource: "order", id: order().id });
  return { proposal, done: await applyHeal(stand.deps, proposal, decision) };
};

describe("a time that cannot be", () => {
  test("in an event changes nothing, is told, and the object is read again", async () => {
    const before = await row();
    const seq = await storeEvent(
      db,
      "order.updated",
      { ...order(), total: 1, updated_at: never },
      new Date().toISOString(),
    );
    const { log, random, clock, serviceClock, listener } = stand.deps;
    const told = { clock, serviceClock, listener };
    await applyBatch({ db, log, random, places: defaultEnvelopePaths, ...told }, [seq]);
    expect(await row()).toEqual(before);
    expect(await db("inbox.events").where({ seq }).first()).toMatchObject({
      state: "ignored",
      reason: expect.stringContaining("dated 9999-01-01"),
    });
    expect(await openAlerts()).toEqual(["misdated"]);
    expect(await db("inbox.fetches").select("resource", "id", "reason")).toEqual([
      { resource: "order", id: order().id, reason: "unbelieved" },
    ]);
    expect(await db("mirror.unbelieved").pluck("id")).toEqual([order().id]);
  });

  test("in what the service shows is a hole in the proof until it shows another", async () => {
    const before = await row();
    const updatedAt = order()["updated_at"];
    Object.assign(order(), { updated_at: never });
    later();
    const poisoned = await stand.run();
    expect(poisoned).toMatchObject({ complete: false, totals: { left: { unreadable: 1 } } });
    expect(await row()).toEqual(before);
    expect(await openAlerts()).toContain("misdated");
    Object.assign(order(), { updated_at: updatedAt });
    expect(await stand.run()).toMatchObject({ complete: true, totals: { left: {} } });
  });

  test("in the Date of one answer dates nothing that it shows", async () => {
    service.quirks = {
      instead: ({ list, nth, query }) =>
        list === "transactions" && nth === 0 && query.get("starting_after") === null
          ? {
              headers: { date: new Date(Date.now() + 3_650 * 86_400_000).toUTCString() },
              body: {
                data: service.objects["transactions"]?.toReversed(),
                has_more: false,
                url: "/transactions",
              },
            }
          : undefined,
    };
    service.requests.length = 0;
    await emptyTables(db, ["mirror.transactions"]);
    expect((await stand.run()).complete).toBe(true);
    const versions = await db("mirror.transactions").pluck<string[]>("version");
    expect(versions).toHaveLength(5);
    expect(versions.filter((version) => version.includes("|203"))).toEqual([]);
  });

  test("in every answer is a clock that was moved, and is followed", async () => {
    service.quirks = { skewMs: 400 * 86_400_000 };
    const result = await stand.run();
    expect(result.complete).toBe(true);
    expect(result.run.t0.getTime()).toBeGreaterThan(Date.now() + 399 * 86_400_000);
  });
});

describe("heal", () => {
  const poison = () =>
    db.raw(`update mirror.orders set version = '9999' || substr(version, 5), total = 1 where id = ?`, [order().id]);

  test("writes what a version of the future keeps out, and says who did it and why", async () => {
    await poison();
    later();
    expect((await stand.run()).totals.left).toEqual({ mismatch: 1, edited_row: 1 });
    const [finding] = await db("reconcile.findings").where({ state: "open", class: "mismatch" });
    expect(finding.evidence.remedy).toContain(`node src/bin/tallyhook.js heal order ${order().id} --from-service`);
    const { proposal, done } = await heal();
    expect(proposal).toMatchObject({
      differences: [{ field: "total", mirror: 1, service: order()["total"] }, { field: "version" }],
      seen: { futureVersions: ["version"] },
    });
    expect(done).toBe(true);
    expect(await row()).toMatchObject({ total: String(order()["total"]) });
    const [healed] = await db("mirror.heals");
    expect(healed).toMatchObject({
      resource: "order",
      id: order().id,
      healed_by: "ann",
      reason: decision.reason,
      before_sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
      after_sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
    expect(healed.changed_columns).toEqual(expect.arrayContaining(["total", "version"]));
    await expect(db("mirror.heals").delete()).rejects.toThrow("append-only");
    expect(await db("reconcile.findings").whereNot("state", "healed")).toEqual([]);
    expect(await stand.run()).toMatchObject({ complete: true, totals: { left: {}, healed: {} } });
    Object.assign(order(), { total: 77, subtotal: 77, updated_at: new Date().toISOString() });
    await stand.run();
    expect(await row()).toMatchObject({ total: "77" });
  });

  test("writes nothing over a row that has changed since somebody looked", async () => {
    await poison();
    const proposal = await proposeHeal(stand.deps, { resource: "order", id: order().id });
    await db("mirror.orders").where("id", order().id).update({ total: 2 });
    expect(await applyHeal(stand.deps, proposal, decision)).toBe(false);
    expect(await row()).toMatchObject({ total: "2" });
    expect(await db("mirror.heals")).toEqual([]);
  });

  test("gives an object that the service itself dates 9999 the time of the answer", async () => {
    Object.assign(order(), { total: 5, subtotal: 5, updated_at: never });
    later();
    const { proposal, done } = await heal();
    expect({ done, isRedated: proposal.isRedated }).toEqual({ done: true, isRedated: true });
    expect(await row()).toMatchObject({ total: "5", version: expect.stringMatching(/^20/) });
    expect(await openAlerts()).toEqual([]);
  });

  test("takes a state of the future out of the history, which reports and chargebacks are made of", async () => {
    await db.raw(
      `insert into mirror.versions (resource, id, source_updated_at, content_hash, cause, data)
       select resource, id, '9999-01-01Z', 'x', 'event:1', data || '{"status": "chargeback"}' from mirror.versions
       where resource = 'order' and id = ?`,
      [order().id],
    );
    expect(await db("mirror.chargebacks").pluck("key")).toEqual([order().id]);
    await heal();
    expect(await db("mirror.chargebacks")).toEqual([]);
    expect(await db("mirror.unbelieved").pluck("id")).toEqual([order().id]);
  });

  test("overrules later states that could be: no report reads them, no replay brings them back, and what comes later counts", async () => {
    const { log, random, clock, serviceClock, listener } = stand.deps;
    const told = { clock, serviceClock, listener };
    const deps = { db, log, random, places: defaultEnvelopePaths, ...told };
    const inMinutes = (n: number) => new Date(Date.now() + n * 60_000).toISOString();
    const event = (changes: Record<string, unknown>) =>
      storeEvent(db, "order.updated", { ...order(), ...changes }, new Date().toISOString());
    const seq = await event({ status: "chargeback", updated_at: inMinutes(30) });
    await applyBatch(deps, [seq]);
    expect(await row()).toMatchObject({ status: "chargeback" });
    expect(await db("mirror.chargebacks").pluck("key")).toEqual([order().id]);

    expect((await heal()).done).toBe(true);
    expect(await row()).toMatchObject({ status: "succeeded" });
    expect(await db("mirror.chargebacks")).toEqual([]);
    expect(await db("mirror.versions").whereRaw("source_updated_at > now()")).toEqual([]);
    const [{ seq: number }] = await db("mirror.heals").select("seq");
    expect(await db("mirror.unbelieved").select("id", "cause", "heal")).toEqual([
      { id: order().id, cause: `event:${seq}`, heal: number },
    ]);

    const healed = await row();
    await replayEvents(db, [seq]);
    await applyBatch(deps, [seq]);
    expect(await row()).toEqual(healed);
    expect(await db("mirror.chargebacks")).toEqual([]);
    expect(await db("mirror.versions").whereRaw("source_updated_at > now()")).toEqual([]);

    await applyBatch(deps, [await event({ status: "refunded", updated_at: inMinutes(31) })]);
    expect(await row()).toMatchObject({ status: "refunded" });
  });

  test("believes an overruled state once the service itself shows it", async () => {
    const { log, random, clock, serviceClock, listener } = stand.deps;
    const told = { clock, serviceClock, listener };
    const updatedAt = new Date(Date.now() + 30 * 60_000).toISOString();
    const changed = { ...order(), description: "changed", updated_at: updatedAt };
    const seq = await storeEvent(db, "order.updated", changed, new Date().toISOString());
    await applyBatch({ db, log, random, places: defaultEnvelopePaths, ...told }, [seq]);
    await heal();
    expect(await row()).toMatchObject({ description: null });
    Object.assign(order(), changed);
    later();
    await stand.run();
    expect(await row()).toMatchObject({ description: "changed" });
  });

  test("refuses what the service does not know", async () => {
    const id = "00000000-0000-4000-8000-000000000000";
    await expect(proposeHeal(stand.deps, { resource: "order", id })).rejects.toThrow("does not know");
  });
});
