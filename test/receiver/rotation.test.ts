import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import type { Clock } from "../../src/platform/clock.ts";
import { addSecret, retireSecret } from "../../src/receiver/secrets-store.ts";
import { createTestDatabase } from "../support/database.ts";
import type { TestDatabase } from "../support/database.ts";
import { encryption, newEvent, signatureOf, startStand } from "./receiver-stand.ts";
import type { Stand } from "./receiver-stand.ts";

const oldSecret = "whsec_the-secret-before-the-rotation";
const newSecret = "whsec_the-secret-after-the-rotation";

let database: TestDatabase;
let stand: Stand;
let nowMs = 0;
const clock: Clock = { now: () => new Date(nowMs) };
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.destroy());
beforeEach(async () => {
  nowMs = Date.parse("2026-03-01T12:00:00Z");
  await database.db("receiver.secrets").delete();
});
afterEach(() => stand.close());

const add = (value: string, window: { notBefore?: Date; notAfter?: Date } = {}) =>
  addSecret({ db: database.db, encryption }, "svc", { value, ...window });

async function statusWith(secret: string): Promise<number> {
  const { body } = newEvent();
  const answer = await stand.send(body, { secret, t: Math.floor(nowMs / 1000) });
  // An event is in the inbox when, and only when, it was acknowledged.
  expect(await stand.stored(body)).toHaveLength(answer.status === 200 ? 1 : 0);
  return answer.status;
}

test("inside the window both verify, at its end the old one stops, without a restart", async () => {
  const end = new Date(nowMs + 3_600_000);
  await add(oldSecret, { notAfter: end });
  await add(newSecret);
  stand = await startStand(database.url, { clock, environment: [] });
  expect([await statusWith(oldSecret), await statusWith(newSecret)]).toEqual([200, 200]);
  nowMs = end.getTime() - 1;
  expect([await statusWith(oldSecret), await statusWith(newSecret)]).toEqual([200, 200]);
  nowMs = end.getTime();
  expect([await statusWith(oldSecret), await statusWith(newSecret)]).toEqual([401, 200]);
});

test("a secret added while the receiver runs verifies the very first event signed with it", async () => {
  await add(oldSecret);
  stand = await startStand(database.url, { clock, environment: [] });
  expect(await statusWith(oldSecret)).toBe(200);
  await add(newSecret);
  nowMs += 1_000;
  expect(await statusWith(newSecret)).toBe(200);
  expect(stand.receiver.counters.rejected.no_match).toBe(0);
});

test("a secret that was retired is refused within 5 s", async () => {
  const { id } = await add(oldSecret);
  stand = await startStand(database.url, { clock, environment: [newSecret] });
  expect(await statusWith(oldSecret)).toBe(200);
  await retireSecret(database.db, id, { now: clock.now(), at: clock.now() });
  const begun = performance.now();
  while ((await statusWith(oldSecret)) === 200) {
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  expect(performance.now() - begun).toBeLessThan(5_000);
  expect(await statusWith(newSecret)).toBe(200);
});

test("a sender that signs with both during the rotation is taken", async () => {
  await add(newSecret);
  stand = await startStand(database.url, { clock, environment: [] });
  const { body } = newEvent();
  const t = Math.floor(nowMs / 1000);
  const byOld = signatureOf(Buffer.from(body), { secret: oldSecret, t });
  const byNew = signatureOf(Buffer.from(body), { secret: newSecret, t });
  const signature = `${byOld},${byNew.slice(byNew.indexOf("v1="))}`;
  expect((await stand.send(body, { signature })).status).toBe(200);
});
