import { afterEach, expect, test } from "vitest";
import { defaultAppendLimits } from "../../src/core/inbox/append.ts";
import { startOwnServer } from "../support/own-server.ts";
import { type Stand, expectRefusal, newEvent, startStand, timed, until } from "./receiver-stand.ts";
import { startStallingProxy } from "./stalling-proxy.ts";
import { useTestDatabase } from "../support/use-database.ts";

const database = useTestDatabase();
const stands: Stand[] = [];
afterEach(async () => {
  await Promise.all(stands.splice(0).map((stand) => stand.close()));
});

async function start(...parts: Parameters<typeof startStand>): Promise<Stand> {
  const stand = await startStand(...parts);
  stands.push(stand);
  return stand;
}

const readiness = async (stand: Stand) =>
  JSON.parse((await stand.request({ method: "GET", path: "/readyz" })).body) as unknown;

test("a database that is killed: 503 in time, and events are taken again when it is back", async () => {
  const server = await startOwnServer();
  try {
    const stand = await start(server.url);
    const before = Array.from({ length: 20 }, () => newEvent());
    for (const { body } of before) expect((await stand.send(body)).status).toBe(200);

    await server.kill();
    const lost = newEvent();
    const { result, ms } = await timed(() => stand.send(lost.body));
    expectRefusal(result, 503, "service_unavailable");
    expect(result.headers.get("retry-after")).toBe("5");
    expect(ms).toBeLessThan(6_500);
    await until(async () => {
      const answer = await stand.request({ method: "GET", path: "/readyz" });
      return answer.status === 503;
    });
    expect((await stand.request({ method: "GET", path: "/healthz" })).status).toBe(200);

    await server.restart();
    await until(async () => (await stand.send(lost.body)).status === 200);
    await until(async () => ((await readiness(stand)) as { status: string }).status === "ok");
    for (const { body } of [...before, lost]) expect(await stand.stored(body)).toHaveLength(1);
    expect(stand.receiver.counters.unavailable).toBeGreaterThan(0);
    expect(stand.receiver.counters.inFlight).toBe(0);
  } finally {
    await Promise.all(stands.splice(0).map((stand) => stand.close()));
    await server.destroy();
  }
});

test("a database that is away from the start: 503, and 200 when it comes", async () => {
  const proxy = await startStallingProxy(database.url);
  proxy.cut();
  const stand = await start(proxy.url);
  const { body } = newEvent();
  expectRefusal(await stand.send(body), 503, "service_unavailable");
  expect(await readiness(stand)).toEqual({
    status: "unavailable",
    reasons: ["database", "schema", "signing_secrets"],
  });
  proxy.resume();
  await until(async () => (await stand.send(body)).status === 200);
  expect(await database.db("inbox.events").where({ raw: Buffer.from(body) })).toHaveLength(1);
  await Promise.all(stands.splice(0).map((each) => each.close()));
  await proxy.close();
});

test("a database that falls silent: every request is answered in time, none waits for the one before", async () => {
  const proxy = await startStallingProxy(database.url);
  const stand = await start(proxy.url, {
    options: { limits: { answerMs: 1_000, tickMs: 50 } },
    databaseTimeoutMs: 5_000,
  });
  expect((await stand.send(newEvent().body)).status).toBe(200);
  proxy.stall();
  const events = Array.from({ length: 50 }, () => newEvent());
  const { result, ms } = await timed(() => Promise.all(events.map(({ body }) => stand.send(body))));
  expect(new Set(result.map(({ status }) => status))).toEqual(new Set([503]));
  // One after the other, or with the database's time limit, they would take longer.
  expect(ms).toBeLessThan(4_500);
  const unanswered = await stand.request({ method: "GET", path: "/readyz" });
  expect(unanswered.status).toBe(503);

  proxy.resume();
  for (const { id, body } of events) {
    await until(async () => (await stand.send(body)).status === 200);
    const rows = await database.db("inbox.events").where({ event_id: id });
    expect(rows).toHaveLength(1);
  }
  await Promise.all(stands.splice(0).map((each) => each.close()));
  await proxy.close();
});

test("a commit that comes after the 503 is one event, and its next delivery a repeat", async () => {
  const stand = await start(database.url, {
    options: { limits: { answerMs: 400, tickMs: 50 } },
  });
  const { id, body } = newEvent();
  const lock = await database.db.transaction();
  await lock.raw("lock table inbox.receipts in access exclusive mode");
  expectRefusal(await stand.send(body), 503, "service_unavailable");
  expect(stand.receiver.counters).toMatchObject({ unavailable: 1, accepted: 0 });
  await lock.rollback();
  await until(async () => (await stand.stored(body)).length === 1);
  expect(stand.committed).toHaveLength(1);
  expect(JSON.parse((await stand.send(body)).body)).toEqual({
    received: true,
    id,
    duplicate: true,
  });
  // The late commit was told to nobody: it counts as nothing but the 503 that was sent.
  expect(stand.receiver.counters).toMatchObject({
    accepted: 0,
    duplicate: 1,
    unavailable: 1,
    failed: 0,
    inFlight: 0,
  });
});

test("when too many wait, further ones are sent away at once", async () => {
  const stand = await start(database.url, {
    options: {
      appendLimits: { ...defaultAppendLimits, maxWaitingRows: 10 },
    },
  });
  const lock = await database.db.transaction();
  await lock.raw("lock table inbox.receipts in access exclusive mode");
  const events = Array.from({ length: 30 }, () => newEvent());
  const answers = events.map(({ body }) => stand.send(body));
  await until(() => stand.receiver.counters.unavailable === 19);
  await lock.rollback();
  const statuses = (await Promise.all(answers)).map(({ status }) => status);
  expect(statuses.filter((status) => status === 200)).toHaveLength(11);
  for (const [n, { body }] of events.entries()) {
    expect(await stand.stored(body)).toHaveLength(statuses[n] === 200 ? 1 : 0);
  }
});
