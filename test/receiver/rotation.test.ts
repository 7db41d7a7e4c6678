import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Clock } from "../../src/platform/clock.ts";
import { addSecret, retireSecret } from "../../src/core/receiver/secrets-store.ts";
import { type Stand, encryption, newEvent, signatureOf, startStand, until } from "./receiver-stand.ts";
import { type StallingProxy, startStallingProxy } from "./stalling-proxy.ts";
import { useTestDatabase } from "../support/use-database.ts";

const oldSecret = "whsec_the-secret-before-the-rotation";
const newSecret = "whsec_the-secret-after-the-rotation";

const database = useTestDatabase();
let stand: Stand;
let proxy: StallingProxy | undefined;
let nowMs = 0;
const clock: Clock = { now: () => new Date(nowMs) };
beforeEach(async () => {
  nowMs = Date.parse("2026-03-01T12:00:00Z");
  await database.db("receiver.secrets").delete();
});
afterEach(async () => {
  await stand.close();
  await proxy?.close();
  proxy = undefined;
});

const add = (value: string, window: { notBefore?: Date; notAfter?: Date } = {}) =>
  addSecret({ db: database.db, encryption }, "svc", { value, ...window });

async function statusWith(secret: string): Promise<number> {
  const { body } = newEvent();
  const answer = await stand.send(body, { secret, t: Math.floor(nowMs / 1000) });
  // An event is in the inbox when, and only when, it was acknowledged.
  const stored = await database.db("inbox.receipts").where({ raw: Buffer.from(body) });
  expect(stored).toHaveLength(answer.status === 200 ? 1 : 0);
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

test("secrets added at any moment while the receiver runs verify the very first event signed with them", async () => {
  await add(oldSecret);
  stand = await startStand(database.url, { clock, environment: [], secretsTiming: {} });
  const statuses = Array.from({ length: 7 }, async (_, n) => {
    // Spread over the second in which the secrets are not read again, and over their regular reading.
    await sleep(n * 370);
    await add(`${newSecret}-${n}`);
    return statusWith(`${newSecret}-${n}`);
  });
  expect(new Set(await Promise.all(statuses))).toEqual(new Set([200]));
  expect(stand.receiver.counters.rejected.no_match).toBe(0);
});

test("the first secret of a receiver that has none verifies the very first event as well", async () => {
  stand = await startStand(database.url, { clock, environment: [] });
  expect(await statusWith(newSecret)).toBe(401);
  await add(newSecret);
  expect(await statusWith(newSecret)).toBe(200);
});

test("what might be signed with a secret that cannot be read now gets 503, and 200 when it can", async () => {
  proxy = await startStallingProxy(database.url);
  await add(oldSecret);
  stand = await startStand(proxy.url, { clock, environment: [] });
  await add(newSecret);
  proxy.cut();
  expect([await statusWith(oldSecret), await statusWith(newSecret)]).toEqual([503, 503]);
  expect(stand.receiver.counters.rejected.no_match).toBe(0);
  proxy.resume();
  await until(async () => (await statusWith(newSecret)) === 200);
  expect(await statusWith("whsec_a-secret-that-nobody-stored")).toBe(401);
});

test("where no secret can be stored, a wrong signature is one whether the database is there or not", async () => {
  proxy = await startStallingProxy(database.url);
  stand = await startStand(proxy.url, {
    clock,
    environment: [oldSecret],
    canStoreSecrets: false,
  });
  proxy.cut();
  expect([await statusWith(oldSecret), await statusWith(newSecret)]).toEqual([503, 401]);
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
