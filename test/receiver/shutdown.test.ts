import { expect, test } from "vitest";
import { useTestDatabase } from "../support/use-database.ts";
import { openConnection, requestBytes } from "./raw-http.ts";
import { type Stand, delivery, newEvent, startStand, timed, until } from "./receiver-stand.ts";

const database = useTestDatabase();

/** Sends one event after the other over one connection until that ends; gives back what was acknowledged. */
async function sendUntilClosed(stand: Stand): Promise<string[]> {
  const acknowledged: string[] = [];
  const connection = await openConnection(stand.port);
  for (;;) {
    const { body } = newEvent();
    connection.write(requestBytes(delivery(body)));
    const answer = await connection.answer();
    if (answer === null) return acknowledged;
    if (answer.status === 200) acknowledged.push(body);
  }
}

test("closing under load loses nothing that was acknowledged, and does not take long", async () => {
  for (let round = 0; round < 3; round++) {
    const stand = await startStand(database.url);
    const senders = Array.from({ length: 40 }, () => sendUntilClosed(stand));
    const { counters } = stand.receiver;
    await until(() => counters.accepted > 100 * (round + 1) && counters.inFlight > 5);
    const { ms } = await timed(() => stand.receiver.close());
    expect(ms).toBeLessThan(8_000);
    const bodies = (await Promise.all(senders)).flat();
    expect(bodies.length).toBe(counters.accepted);
    const { rows } = await database.db.raw<{ rows: unknown[] }>(
      "select 1 from inbox.receipts where raw = any(select convert_to(body, 'UTF8') from unnest(?::text[]) as body)",
      [bodies],
    );
    expect(rows).toHaveLength(bodies.length);
    await stand.close();
  }
});

test("a request under way is finished before the connection is closed, and no new connection is taken", async () => {
  const stand = await startStand(database.url);
  const lock = await database.db.transaction();
  await lock.raw("lock table inbox.receipts in access exclusive mode");
  const { id, body } = newEvent();
  const answer = stand.send(body);
  await until(() => stand.receiver.counters.inFlight === 1);
  let isClosed = false;
  const closing = stand.receiver.close().then(() => (isClosed = true));
  await expect(openConnection(stand.port)).rejects.toThrow("ECONNREFUSED");
  expect(isClosed).toBe(false);
  await lock.rollback();
  const { headers, body: reply } = await answer;
  expect(JSON.parse(reply)).toEqual({ received: true, id, duplicate: false });
  expect(headers.get("connection")).toBe("close");
  await closing;
  expect(await stand.stored(body)).toHaveLength(1);
  await stand.close();
});

test("connections that idle, or have sent half a request, do not hold it up", async () => {
  const stand = await startStand(database.url, {
    options: { limits: { answerMs: 500, tickMs: 50 } },
  });
  const open = () => openConnection(stand.port);
  const [idle, silent, halfHeaders, halfBody] = [await open(), await open(), await open(), await open()];
  idle.write(requestBytes({ method: "GET", path: "/healthz" }));
  await idle.answer();
  halfHeaders.write("POST /webhooks HTTP/1.1\r\nHost: a\r\n");
  halfBody.write(requestBytes({ headers: [["Content-Length", "100"]] }));
  await until(() => stand.receiver.counters.inFlight === 1);
  const { ms } = await timed(() => stand.receiver.close());
  expect(ms).toBeLessThan(5_000);
  expect((await halfBody.answer())?.status).toBe(408);
  await Promise.all([idle, silent, halfHeaders, halfBody].map((each) => each.closed));
  await stand.close();
});

test("a database that hangs does not hold it up for longer than the limit", async () => {
  const stand = await startStand(database.url, {
    options: { limits: { answerMs: 300, tickMs: 50, closeMs: 1_000 } },
    databaseTimeoutMs: 10_000,
  });
  const lock = await database.db.transaction();
  await lock.raw("lock table inbox.receipts in access exclusive mode");
  const answer = stand.send(newEvent().body);
  await until(() => stand.receiver.counters.inFlight === 1);
  const { ms } = await timed(() => stand.receiver.close());
  expect(ms).toBeLessThan(5_000);
  expect((await answer).status).toBe(503);
  await lock.rollback();
  await stand.close();
});

test("closing twice is closing once", async () => {
  const stand = await startStand(database.url);
  await Promise.all([stand.receiver.close(), stand.receiver.close()]);
  await stand.close();
});
