import { afterEach, beforeAll, afterAll, expect, test } from "vitest";
import { type TestDatabase, createTestDatabase } from "../support/database.ts";
import { type RawConnection, openConnection, requestBytes } from "./raw-http.ts";
import { type Stand, delivery, expectRefusal, newEvent, startStand, until } from "./receiver-stand.ts";

const maxHeldBodyBytes = 40_000;

let database: TestDatabase;
let stand: Stand;
let connections: RawConnection[] = [];
beforeAll(async () => {
  database = await createTestDatabase();
  stand = await startStand(database.url, {
    options: { maxBodyBytes: 36_000, maxHeldBodyBytes },
    // No second reading within the time of these tests.
    secretsTiming: { reloadAtMostEveryMs: 60_000 },
  });
});
afterEach(() => {
  for (const connection of connections.splice(0)) connection.destroy();
});
afterAll(async () => {
  await stand.close();
  await database.destroy();
});

async function write(bytes: Buffer): Promise<RawConnection> {
  const connection = await openConnection(stand.port);
  connections.push(connection);
  connection.write(bytes);
  return connection;
}

const largeEvent = () => delivery(newEvent({ note: "x".repeat(35_000) }).body);
const statusOf = async (request: ReturnType<typeof delivery>) => (await stand.request(request)).status;

/** Only with nothing taken is there room for an event as large as this. */
const untilAllIsFree = () => until(async () => (await statusOf(largeEvent())) === 200);

test("bodies that are half sent take room, and past it others are sent away unread until they are gone", async () => {
  const halves = Array.from({ length: 4 }, () => {
    const bytes = requestBytes({ headers: [["Content-Length", "18000"]] });
    return write(Buffer.concat([bytes, Buffer.alloc(9_000)]));
  });
  connections = await Promise.all(halves);
  await until(async () => (await statusOf(largeEvent())) === 503);
  const before = stand.receiver.counters.unavailable;

  // Only the headers: the answer does not wait for the body.
  const asking = await write(requestBytes({ headers: [["Content-Length", "35000"]] }));
  const answer = await asking.answer();
  if (answer === null) throw new Error("no answer");
  expectRefusal(answer, 503, "service_unavailable");
  expect(answer.headers.get("retry-after")).toBe("5");
  expect(stand.receiver.counters.unavailable).toBe(before + 1);

  for (const connection of connections) connection.destroy();
  await untilAllIsFree();
});

test("what was only announced takes no room", async () => {
  const headers = [["Content-Length", "36000"]] as const;
  await Promise.all(Array.from({ length: 20 }, () => write(requestBytes({ headers }))));
  await until(() => stand.receiver.counters.inFlight === 20);
  expect(await statusOf(largeEvent())).toBe(200);
});

test("bodies that were read give back all that they took", async () => {
  const small = Array.from({ length: 40 }, () => statusOf(delivery(newEvent().body)));
  expect(new Set(await Promise.all(small))).toEqual(new Set([200]));
  expect(await statusOf(largeEvent())).toBe(200);
});

test("a body in tiny pieces takes what they cost, and is sent away in the middle", async () => {
  const pieces = "1\r\nx\r\n".repeat(200);
  const head = requestBytes({ headers: [["Transfer-Encoding", "chunked"]] });
  const connection = await write(Buffer.concat([head, Buffer.from(pieces)]));
  const answer = await connection.answer();
  if (answer === null) throw new Error("no answer");
  expectRefusal(answer, 503, "service_unavailable");
  await untilAllIsFree();
});

test("what verifies finds room while wrong signatures wait, of which only some may wait", async () => {
  const wrong = () => delivery(newEvent().body, { secret: "whsec_nobody-knows-this-secret" });
  const { counters } = stand.receiver;
  const before = counters.unavailable;
  const waiting = Array.from({ length: 4 }, () => write(requestBytes(wrong())));
  await Promise.all(waiting);
  await until(() => counters.inFlight === 4);
  // The room for waiting is half of all, less than five of them take.
  expectRefusal(await stand.request(wrong()), 503, "service_unavailable");
  expect(counters).toMatchObject({ inFlight: 4, unavailable: before + 1 });
  expect(await statusOf(delivery(newEvent({ note: "x".repeat(30_000) }).body))).toBe(200);
  for (const connection of connections) connection.destroy();
  await until(() => counters.inFlight === 0);
  await untilAllIsFree();
});
