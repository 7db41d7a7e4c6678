import { beforeEach, expect, test } from "vitest";
import { applyBatch } from "../../src/core/worker/apply-batch.ts";
import { previewEvent } from "../../src/core/worker/preview-event.ts";
import { readNeighbours, statesOfCause } from "../../src/core/mirror/compare/state-neighbours.ts";
import { progressOf } from "../inbox/stored-events.ts";
import { at, rowOf, sampleOrder } from "../mirror/samples.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { applyDeps, emptyAll, storeBody, storeEvent } from "./worker-stand.ts";

const database = useTestDatabase();
beforeEach(() => emptyAll(database.db));

const nothing = () => Promise.resolve(() => Promise.resolve(null));
const preview = (seq: number) => previewEvent(applyDeps(database.db), seq, nothing);

test("tells what a worker then does", async () => {
  const { db } = database;
  const first = await storeEvent(db, "order.created", sampleOrder({ id: "a", status: "pending" }));
  await applyBatch(applyDeps(db), [first]);
  const seq = await storeEvent(db, "order.paid", sampleOrder({ id: "a", updated_at: at(5) }));
  const told = await preview(seq);
  expect(await progressOf(db, seq)).toMatchObject({ state: "received", attempts: 0 });
  expect((await rowOf(db, "orders", "a"))?.["status"]).toBe("pending");
  await applyBatch(applyDeps(db), [seq]);
  const done = await progressOf(db, seq);
  expect(told).toMatchObject({
    kind: "applied",
    completed: { state: done.state, resourceId: done.resource_id },
    objects: [{ object: { resource: "order", id: "a" }, isNew: false }],
  });
  const changes = told.kind === "applied" ? (told.objects[0]?.changes ?? []) : [];
  expect(changes.find(({ field }) => field === "status")).toEqual({
    field: "status",
    before: "pending",
    after: "succeeded",
    isPersonal: false,
  });
});

test("logs no dead event for one that would be dead", async () => {
  const seq = await storeBody(database.db, "not JSON");
  const deps = applyDeps(database.db);
  const told = await previewEvent(deps, seq, nothing);
  expect(told).toMatchObject({ kind: "applied", completed: { state: "dead" } });
  expect(deps.logged()).toBe("");
});

test("the history's neighbours of a state tell what stood before, and what stands now", async () => {
  const { db } = database;
  const seqs: number[] = [];
  for (const [status, second] of [
    ["pending", 1],
    ["failed", 5],
    ["succeeded", 9],
  ] as const) {
    seqs.push(await storeEvent(db, "order.x", sampleOrder({ id: "a", status, updated_at: at(second) })));
    await applyBatch(applyDeps(db), seqs.slice(-1));
  }
  const cause = `event:${seqs[1]}`;
  const states = await statesOfCause(db, cause, { resource: "order", id: "a" });
  const [found] = await readNeighbours(db, states, new Date());
  expect(found).toMatchObject({
    itself: { cause, data: { status: "failed" } },
    before: { cause: `event:${seqs[0]}`, data: { status: "pending" } },
    knownLater: null,
    newest: { cause: `event:${seqs[2]}`, data: { status: "succeeded" } },
  });
});
