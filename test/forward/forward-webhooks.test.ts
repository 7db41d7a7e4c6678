import { afterEach, beforeEach, expect, test } from "vitest";
import type { RunningDispatch } from "../../src/parts/delivery/dispatch/start-dispatch.ts";
import { type ChannelServer, type ReceivedPost, startChannelServer } from "../alerts/channels/channel-server.ts";
import { emptyDispatch, untilRegistered } from "../dispatch/dispatch-stand.ts";
import { type GivenRow, emptyInbox, storeRow } from "../inbox/stored-events.ts";
import { eventually } from "../support/eventually.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { openForward, runsOf, settingsFor, verified } from "./forward-stand.ts";

const database = useTestDatabase();
const opened: RunningDispatch[] = [];
let subscriber: ChannelServer;
beforeEach(async () => {
  await emptyDispatch(database.db);
  await emptyInbox(database.db);
  subscriber = await startChannelServer();
});
afterEach(async () => {
  await subscriber.close();
  await Promise.all(opened.splice(0).map((forward) => forward.close()));
});

async function forward(given: object = {}): Promise<void> {
  const settings = settingsFor(`${subscriber.url}/in`, { send: "webhooks", ...given });
  opened.push(openForward(database.url, settings));
  await untilRegistered(database.db, "forward:crm");
}

/** An event about an order, as a worker leaves it. */
const store = (id: string, text: string, given: GivenRow = {}) =>
  storeRow(database.db, {
    raw: Buffer.from(text),
    state: "applied",
    resourceType: "order",
    resourceId: id,
    ...given,
  });

const untilSent = () =>
  eventually("all is sent", async () => {
    const { rows } = await database.db.raw<{ rows: { open: number; behind: number }[] }>(
      `select (select count(*)::int from dispatch.runs) as open,
              (select count(*)::int from dispatch.handlers where position < inbox.readable_until()) as behind`,
    );
    return rows[0]?.open === 0 && rows[0].behind === 0;
  });
const bodies = () => subscriber.posts.map(({ body }) => body);

test("each webhook arrives once, byte for byte, under its event's id, in the order of its object", async () => {
  await forward();
  const texts = ['{ "id":"evt_1",\n "total": 1.50 }', '{"id":"evt_2","name":"Zoë \\u0000"}', "{}  "];
  for (const [n, text] of texts.entries()) {
    await store("order-1", text, { eventId: `evt_${n + 1}`, type: "order.succeeded" });
    await store("order-2", `{"n":${n}}`);
  }
  await untilSent();
  expect(bodies().filter((body) => texts.includes(body))).toEqual(texts);
  expect(bodies().filter((body) => !texts.includes(body))).toEqual(['{"n":0}', '{"n":1}', '{"n":2}']);
  for (const post of subscriber.posts) verified(post);
  const first = subscriber.posts.find(({ body }) => body === texts[0]) as ReceivedPost;
  const { received_at: receivedAt } = await database
    .db("inbox.receipts")
    .where({ event_id: "evt_1" })
    .first("received_at");
  expect(first.headers).toMatchObject({
    "content-type": "application/json",
    "webhook-id": "evt_1",
    "tallyhook-event-id": "evt_1",
    "tallyhook-received-at": receivedAt.toISOString(),
  });
});

test("an id that no header can carry is sent as its hash, and percent-encoded beside it", async () => {
  await forward();
  await store("order-1", "{}", { eventId: "évt\n1" });
  await untilSent();
  const [post] = subscriber.posts as [ReceivedPost];
  expect(verified(post)).toEqual({});
  expect(post.headers["webhook-id"]).toMatch(/^sha256:[0-9a-f]{64}$/);
  expect(post.headers["tallyhook-event-id"]).toBe("%C3%A9vt%0A1");
});

test("an event waits until a worker has tried it, and later ones wait behind it; one without an object goes alone", async () => {
  const { db } = database;
  await forward();
  const untried = await store("order-1", '{"n":1}', { state: "received", resourceId: null });
  await store("order-2", '{"n":2}');
  await eventually("the planner has looked", async () => {
    const row = await db("dispatch.handlers").first("position");
    return Number(row.position) <= untried - 1;
  });
  expect(await runsOf(db)).toEqual([]);
  await db("inbox.progress").where({ seq: untried }).update({ state: "failed" });
  await untilSent();
  expect(bodies().toSorted()).toEqual(['{"n":1}', '{"n":2}']);
});

test("an event that is committed after one with a higher number is not left out", async () => {
  const { db } = database;
  await forward();
  const late = await db.transaction();
  const given: GivenRow = { state: "applied", resourceType: "order", resourceId: "order-1" };
  await storeRow(late, { ...given, raw: Buffer.from('{"n":1}') });
  await store("order-1", '{"n":2}');
  await late.commit();
  await untilSent();
  expect(bodies()).toEqual(['{"n":1}', '{"n":2}']);
});

test("only the types that a destination wants are sent, from the time on at which it begins", async () => {
  await store("order-1", '{"n":1}', { type: "order.succeeded", receivedAgoSeconds: 86_400 });
  await store("order-1", '{"n":2}', { type: "order.succeeded" });
  await store("order-1", '{"n":3}', { type: "order.failed" });
  const from = new Date(new Date().getTime() - 3_600_000).toISOString();
  await forward({ types: ["order.succeeded"], from });
  await untilSent();
  expect(bodies()).toEqual(['{"n":2}']);
});

test("what an erasure left is sent; an event whose bytes are gone is dead at once, with its reason", async () => {
  const { db } = database;
  subscriber.answerWith((response) => response.writeHead(500).end());
  await forward({ concurrency: 1 });
  const first = await store("order-1", '{"email":"a@b.example"}');
  await subscriber.reached(1);
  await db("inbox.receipts")
    .where({ seq: first })
    .update({ raw: Buffer.from('{"email":null}') });
  subscriber.answerWith((response) => response.end());
  await untilSent();
  expect(bodies().at(-1)).toBe('{"email":null}');
  const gone = await storeRow(db, { raw: null, state: "dead" });
  const [run] = await eventually("it is dead", async () => {
    const rows = await runsOf(db);
    return rows[0]?.state === "dead" && rows;
  });
  expect(run).toEqual({
    id: String(gone),
    kind: "order.created",
    state: "dead",
    attempts: 1,
    error: "the event's bytes are gone: pruned, dropped after EVENTS_KEEP_DAYS, or erased",
  });
});
