import type { Knex } from "knex";
import { afterAll, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { z } from "zod";
import { defineEndpoint, idParam, noBody, noParams, noQuery } from "../../src/core/contract/endpoint.ts";
import { defaultEnvelopePaths } from "../../src/core/contract/event-envelope.ts";
import { createdAtQuery, listOf, pageQuery } from "../../src/core/contract/lists.ts";
import { canonicalTimestamp } from "../../src/core/contract/timestamp.ts";
import { timestamp, wireId } from "../../src/core/contract/wire-types.ts";
import { canonicalContent } from "../../src/core/mirror/canonical.ts";
import {
  type Columns,
  type MirrorResource,
  changedAt,
  code,
  money,
  objectAt,
  personalText,
  readColumns,
  readObject,
  reference,
  time,
} from "../../src/core/mirror/resources/resource.ts";
import { type Decoded, type GroupState, type Snapshot, groupState } from "../../src/core/mirror/snapshot.ts";
import { statusRank } from "../../src/core/mirror/version.ts";
import { defaultReconcileSettings } from "../../src/parts/reconcile/settings.ts";
import { readProof } from "../../src/parts/reports/base/report-facts.ts";
import { resolvePeriod } from "../../src/parts/reports/base/period.ts";
import { refusalLines } from "../../src/parts/reports/close/hindrance.ts";
import { whyNotProved } from "../../src/parts/reports/close/refusal.ts";
import { testAlertContext } from "../alerts/test-alert-context.ts";
import { looksBack } from "../alerts/sweep-stand.ts";
import { storeEvent } from "../reconcile/deliveries.ts";
import { coverAll } from "../reports/coverage.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { resourcesSql } from "./resources-sql.ts";

/*
 * A resource that the service does not have. What stands in this part of the file is all that a new one needs: its
 * contract, its table, its description, and its line in the list.
 */

declare module "../../src/core/mirror/snapshot.ts" {
  interface ResourceNames {
    parcel: true;
  }
}

const parcelSchema = z.looseObject({ id: wireId, customer_id: wireId, created_at: timestamp });

const listParcels = defineEndpoint({
  name: "listParcels",
  method: "GET",
  path: "/parcels",
  summary: "List parcels",
  permission: "orders:read",
  idempotency: "none",
  params: noParams,
  query: pageQuery.extend(createdAtQuery.shape),
  body: noBody,
  status: 200,
  answer: listOf(parcelSchema),
  errors: [],
});

const getParcel = defineEndpoint({
  name: "getParcel",
  method: "GET",
  path: "/parcels/{id}",
  summary: "Retrieve a parcel",
  permission: "orders:read",
  idempotency: "none",
  params: idParam,
  query: noQuery,
  body: noBody,
  status: 200,
  answer: parcelSchema,
  errors: [],
});

const createParcels = `create table mirror.parcels (
  id text collate "C" primary key, customer_id text collate "C", status text, fee bigint, recipient text,
  created_at timestamptz, updated_at timestamptz, data jsonb, version text collate "C" not null default '',
  door_note text, signed_by text, proof jsonb, delivery_version text collate "C" not null default '',
  source_updated_at timestamptz, content_hash text, deleted_at timestamptz, last_cause text not null)`;

const core = {
  customer_id: reference,
  status: code,
  fee: money,
  recipient: personalText,
  created_at: time,
  updated_at: changedAt,
} satisfies Columns;

const delivery = { door_note: personalText, signed_by: personalText } satisfies Columns;

const parcel: MirrorResource = {
  name: "parcel",
  table: "parcels",
  service: {
    list: listParcels,
    object: getParcel,
    expand: { object: "delivery", list: "delivery" },
  },
  owner: "customer_id",
  groups: {
    parcel: { versionColumn: "version", contentColumn: "data", inHistory: true, columns: core },
    "parcel.delivery": {
      versionColumn: "delivery_version",
      contentColumn: "proof",
      inHistory: true,
      columns: delivery,
    },
  },
  keptOnErasure: { number: "fee" },
  openCondition: "m.status = 'in_progress'",
  known: {
    fields: new Set([...Object.keys(parcelSchema.shape), "status", "fee", "recipient", "updated_at"]),
    codes: { status: new Set(["in_progress", "succeeded"]) },
  },
  decode(observation: Snapshot): Decoded {
    const read = readObject(parcelSchema, observation);
    if (!read.ok) return read;
    const { object } = observation;
    const parts = {
      id: read.id,
      updatedAt: read.updatedAt,
      confirmedBy: { resource: "parcel", id: read.id },
    } as const;
    const own = {
      group: "parcel",
      ...parts,
      rank: statusRank(object["status"]),
      content: canonicalContent(object, new Set(["delivery"])),
    };
    const states: GroupState[] = [groupState(observation, own, readColumns(core, object, read.updatedAt))];
    if (Object.hasOwn(object, "delivery")) {
      const shown = objectAt(object, "delivery");
      const group = {
        group: "parcel.delivery",
        ...parts,
        rank: 0,
        content: canonicalContent(shown),
      };
      states.push(groupState(observation, group, readColumns(delivery, shown, read.updatedAt)));
    }
    return { ok: true, id: read.id, states, unread: [] };
  },
};

// Modules of its own, which derive from the list with this resource on it; those of other files do not know it.
vi.resetModules();
afterAll(() => void vi.resetModules());
const { mirrorResources, readEndpointOf } = await import("../../src/core/mirror/resources.ts");
(mirrorResources as MirrorResource[]).push(parcel);
const { applySnapshots, applyStates, newStates } = await import("../../src/core/mirror/write/apply.ts");
const { overwriteObject, readRowBeforeHeal } = await import("../../src/core/mirror/write/overwrite.ts");
const { compareStates } = await import("../../src/core/mirror/compare/compare-states.ts");
const { handEditedRows } = await import("../../src/core/mirror/compare/hand-edited-rows.ts");
const { eraseHistory, eraseRows, objectsOf } = await import("../../src/core/mirror/privacy/erase-mirror.ts");
const { isCustomerKnown, markErased } = await import("../../src/core/mirror/privacy/erased-people.ts");
const { interpretEvent } = await import("../../src/core/worker/interpret-event.ts");
const { makePlan } = await import("../../src/parts/reconcile/plan.ts");
const { differencesOf } = await import("../../src/parts/reconcile/compare/differences.ts");
const { driftFindings } = await import("../../src/parts/reconcile/findings/drift-findings.ts");
const { recordUnreadable } = await import("../../src/parts/reconcile/findings/drift-findings.ts");
const { affectedBy } = await import("../../src/parts/alerts/assess.ts");
const { scanInbox } = await import("../../src/parts/alerts/rules/events.ts");
const { firstNumberOfPrevious } = await import("../../src/core/inbox/partitions.ts");
const { scanStates, unknownValueCondition } = await import("../../src/parts/alerts/rules/unknown-values.ts");

const database = useTestDatabase();

const at = (seconds: number): string => new Date(Date.UTC(2025, 2, 1, 12) + seconds * 1_000).toISOString();

const sample = (fields: Record<string, unknown> = {}): Record<string, unknown> => ({
  id: "parcel-1",
  customer_id: "customer-1",
  status: "in_progress",
  fee: 495,
  recipient: "Jane Doe",
  delivery: { door_note: "Ask for Jane", signed_by: "Jane Doe", weight: 3 },
  created_at: at(0),
  updated_at: at(0),
  ...fields,
});

const look = (object: Record<string, unknown>, observedAt: string | null): Snapshot => ({
  resource: "parcel",
  object,
  fallbackUpdatedAt: null,
  observedAt: observedAt === null ? null : canonicalTimestamp(observedAt),
  cause: observedAt === null ? "event:1" : "fetch",
});

const apply = (...observations: Snapshot[]) => database.db.transaction((trx) => applySnapshots(trx, observations));

function statesOf(observation: Snapshot): GroupState[] {
  const decoded = parcel.decode(observation);
  if (!decoded.ok) throw new Error("the sample cannot be read");
  return decoded.states;
}

const row = (db: Knex = database.db) => db("mirror.parcels").where({ id: "parcel-1" }).first<Record<string, unknown>>();

beforeAll(async () => {
  await database.db.raw(createParcels);
  await database.db.raw(resourcesSql(mirrorResources));
});
beforeEach(() =>
  database.db.transaction(async (trx) => {
    // The history's own trigger lets nobody empty it.
    await trx.raw("set local session_replication_role = replica");
    await trx.raw("truncate mirror.parcels, mirror.versions, mirror.unbelieved");
  }),
);

test("it is stored by the newest state, and every state is kept", async () => {
  const late = sample({ status: "succeeded", updated_at: at(9) });
  await apply(look(late, null), look(sample(), null));
  expect(await row()).toMatchObject({
    status: "succeeded",
    fee: "495",
    recipient: "Jane Doe",
    door_note: "Ask for Jane",
    data: { fee: 495 },
    proof: { weight: 3 },
  });
  const kept = await database.db("mirror.versions").orderBy(["resource", "source_updated_at"]);
  expect(kept.map(({ resource }: { resource: string }) => resource)).toEqual([
    "parcel",
    "parcel",
    "parcel.delivery",
    "parcel.delivery",
  ]);
});

test("it is compared: equal is nothing, a row edited by hand is found and written again", async () => {
  const { db } = database;
  await apply(look(sample(), at(60)));
  expect(await compareStates(db, statesOf(look(sample(), at(120))))).toEqual([]);
  await db("mirror.parcels").update({ fee: 1 });
  const differing = await compareStates(db, statesOf(look(sample(), at(120))));
  expect(differing).toMatchObject([{ resource: "parcel", id: "parcel-1" }]);
  expect(differing.flatMap(differencesOf)).toEqual([{ field: "fee", service: 495, mirror: 1 }]);
  const states = differing.flatMap(({ groups }) => groups.map(({ state }) => state));
  const written = await db.transaction((trx) => applyStates(trx, states));
  expect(newStates(written)).toHaveLength(1);
  expect(await row()).toMatchObject({ fee: "495" });
});

test("what differs in its money is serious, and what is personal or nobody knows is named and not shown", async () => {
  const { db } = database;
  const stored = { gift_message: "For Jane", tags: { Jane: 1 }, delivery: { signed_by: "J. Doe" } };
  await apply(look(sample({ ...stored, recipient: "Jane", fee: 1 }), at(60)));
  const shown = { gift_message: "For Ann", tags: { Ann: 1 }, updated_at: at(9) };
  const states = statesOf(look(sample(shown), at(120)));
  const [object, ...others] = await compareStates(db, states);
  if (object === undefined) throw new Error("the sample does not differ");
  expect(others).toEqual([]);
  const differences = differencesOf(object);
  expect(differences[0]).toEqual({ field: "fee", service: 495, mirror: 1 });
  for (const field of ["recipient", "signed_by", "gift_message", "tags"]) {
    expect(differences).toContainEqual({ field, service: "(differs)", mirror: "(differs)" });
  }
  expect(JSON.stringify(differences)).not.toMatch(/Jane|Ann|Doe/);
  const classification = { kind: "behind", isYoung: false, differences } as const;
  const { resource, id } = object;
  expect(await driftFindings(db, [{ resource, id, object, classification }])).toMatchObject([{ severity: "high" }]);
});

test("it is healed by hand, whatever the mirror holds, and what cannot be deleted bears no mark of it", async () => {
  const { db } = database;
  await apply(look(sample({ fee: 1, updated_at: at(9_999) }), null));
  await db("mirror.parcels").update({ deleted_at: at(0) });
  const faults = [];
  for await (const rows of handEditedRows(db, canonicalTimestamp(at(9_999)) ?? "")) faults.push(...rows);
  expect(faults).toEqual([{ resource: "parcel", id: "parcel-1", columns: ["deleted_at"] }]);
  const shown = look(sample(), at(120));
  const object = { resource: "parcel", id: "parcel-1" } as const;
  await db.transaction(async (trx) => {
    const observedAt = shown.observedAt ?? "";
    const seen = await readRowBeforeHeal(trx, object, observedAt);
    const decision = { by: "ann", reason: "test" };
    const given = { states: statesOf(shown), observedAt, seen };
    expect(await overwriteObject(trx, object, given, decision)).toMatchObject({ kind: "written" });
  });
  expect(await row()).toMatchObject({ fee: "495", deleted_at: null });
});

test("it is read, walked and announced where its description says", async () => {
  expect(readEndpointOf("parcel")).toEqual({ endpoint: getParcel, query: { expand: "delivery" } });
  const wanted = { kind: "full", t0: new Date(at(0)), rangeFrom: null, rangeTo: null } as const;
  const slices = await makePlan(database.db, defaultReconcileSettings, wanted);
  expect(slices.find(({ resource }) => resource === "parcel")).toMatchObject({
    path: "/parcels",
    filter: { expand: "delivery" },
    isClosed: true,
  });
  const body = { id: "e", type: "parcel.sent", created_at: at(0), data: { object: sample() } };
  expect(interpretEvent(defaultEnvelopePaths, { seq: 1, body })).toMatchObject({
    kind: "state",
    observation: { resource: "parcel" },
  });
});

test("a month is not proved before it was read, and a finding about it is dated by its creation", async () => {
  const { db } = database;
  const period = await resolvePeriod(db, { from: "2025-02-01", to: "2025-02-28" }, "UTC");
  const asOf = new Date().toISOString();
  const unproved = { month: "2025-02", period, asOf, abouts: [], differing: new Map() };
  const why = async () => refusalLines(await whyNotProved(db, unproved)).join(" ");
  await coverAll(db, "2025-03-01T00:00:00Z");
  expect(await readProof(db, period, null)).toMatchObject({ verdict: "INCOMPLETE" });
  expect(await why()).toContain("Not read: parcels up to 2025-02-28.");
  await coverAll(db, "2025-03-02T00:00:00Z", { resources: ["parcel"], endedAgo: "1 hour" });
  expect(await readProof(db, period, null)).toMatchObject({ verdict: "PASS" });
  expect(await why()).not.toContain("Not read");

  await apply(look(sample(), at(60)));
  const unreadable = { resource: "parcel", id: "parcel-1", reason: "test" } as const;
  await recordUnreadable(db, { run: null, seenAt: new Date(at(99)) }, [unreadable]);
  expect(await db("reconcile.findings").where({ object_id: "parcel-1" })).toMatchObject([
    { object_at: new Date(at(0)) },
  ]);
});

test("alerts know its events, fields and codes, and tell of others", async () => {
  const { db } = database;
  const context = testAlertContext();
  const seen = (kind: string) => db("alerts.seen_values").where({ kind }).pluck<string[]>("value");
  for (const type of ["parcel.sent", "crate.sent"]) {
    await storeEvent(db, { id: type, type, created_at: at(0), data: { object: sample() } });
  }
  await db("inbox.receipts").update({ received_at: at(0) });
  await db.transaction((trx) => scanInbox(trx, context, { firstNumberOfPrevious }));
  expect(await seen("event.type")).toEqual(["crate.sent"]);

  const [state] = statesOf(look(sample({ status: "lost", delivery: undefined }), null));
  if (state === undefined) throw new Error("the sample shows nothing");
  const { unknownValues } = affectedBy([state]);
  expect(unknownValues).toEqual(new Map([["parcel.status", new Set(["lost"])]]));

  await db.transaction((trx) => scanStates(trx, context));
  await apply(look(sample({ gift_message: "For Ann" }), null));
  await looksBack(db);
  await db.transaction((trx) => scanStates(trx, context));
  expect(await seen("parcel.field")).toEqual(["gift_message"]);
  const told = { kind: "parcel.field", value: "gift_message" };
  expect(unknownValueCondition(context.settings.rules, told, new Date(at(0)))).toMatchObject({
    facts: [{ label: "Field of parcels", value: "gift_message" }],
  });
});

/** Everything that the mirror holds, as one text. */
async function wholeMirror(): Promise<string> {
  const { rows } = await database.db.raw<{ rows: { text: string }[] }>(
    `select string_agg(t, ' ') as text from (
       select to_jsonb(v)::text as t from mirror.versions v union all select to_jsonb(p)::text from mirror.parcels p
       union all select to_jsonb(u)::text from mirror.unbelieved u) everything`,
  );
  return rows[0]?.text ?? "";
}

test("an erasure reaches every group of its history and every column, and so does what comes later", async () => {
  const { db } = database;
  await apply(look(sample(), null), look(sample({ fee: 500, updated_at: at(9) }), null));
  expect(await wholeMirror()).toContain("Jane");
  expect(await isCustomerKnown(db, "customer-1")).toBe(true);
  await markErased(db, "customer-1");
  const ids = await objectsOf(db, "customer-1");
  expect(ids).toContain("parcel-1");
  await db.transaction(async (trx) => {
    const { hashes } = await eraseHistory(trx, "customer-1", ids);
    expect(await eraseRows(trx, "customer-1", ids, hashes)).toMatchObject({ parcels: 1 });
  });
  expect(await wholeMirror()).not.toContain("Jane");
  expect(await row()).toMatchObject({ fee: "500", status: "in_progress", recipient: null });

  const late = sample({ status: "succeeded", updated_at: at(99) });
  await apply(look(late, null));
  expect(await wholeMirror()).not.toContain("Jane");
  expect(await row()).toMatchObject({ status: "succeeded", fee: "495", door_note: null });
  expect(await compareStates(db, statesOf(look(late, at(120))))).toEqual([]);
});
