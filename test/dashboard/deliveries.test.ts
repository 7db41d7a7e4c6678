import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { storeAnswers } from "../../src/core/receiver/counters.ts";
import { applyBatch } from "../../src/core/worker/apply-batch.ts";
import { sampleOrder } from "../mirror/samples.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { applyDeps, emptyAll, storeEvent } from "../worker/worker-stand.ts";
import { type DashboardStand, openDashboard, send, signedIn, testEncryption } from "./dashboard-stand.ts";
import { emptyTables } from "../support/empty-tables.ts";

const database = useTestDatabase();
let dashboard: DashboardStand;
let viewer: string;
let operator: string;

beforeAll(async () => {
  dashboard = await openDashboard(database, {
    settings: { TALLYHOOK_ENCRYPTION_KEY: "ab".repeat(32) },
  });
  viewer = (await signedIn(database.db, ["viewer"], { now: new Date() })).cookie;
  operator = (await signedIn(database.db, ["operator"], { now: new Date() })).cookie;
});
afterAll(() => dashboard.close());
beforeEach(async () => {
  await emptyAll(database.db);
  await emptyTables(database.db, ["receiver.answers_by_minute", "receiver.secrets"]);
  // Rows are dated by the database.
  dashboard.clock.set(new Date());
});

async function page(path: string, cookie = operator): Promise<string> {
  const answer = await send(`${dashboard.url}${path}`, { cookie });
  expect(answer.status).toBe(200);
  return (await answer.text()).replaceAll(/\s+/g, " ");
}

test("tells what came, what was refused and why, of a day and a week", async () => {
  const { db } = database;
  await storeAnswers(
    db,
    new Map([
      ["accepted", 40],
      ["duplicate", 2],
      ["no_match", 3],
    ]),
  );
  await db("receiver.answers_by_minute").insert({
    minute: db.raw("date_trunc('minute', now() - interval '3 days')"),
    reason: "no_match",
    times: 5,
  });
  const text = await page("/deliveries", viewer);
  expect(text).toMatch(/New<\/h3> <p class="stat">40<[^]*Repeats<\/h3> <p class="stat">2</);
  expect(text).toMatch(/Refused<\/h3> <p class="stat">3<\/p> <p class="hint">in 24 hours; 8 in 7 days/);
  expect(text).toMatch(/no_match[^]*no secret that is stored here[^]*>3<[^]*>8</);
});

test("draws the requests of each hour, the refused ones apart, in one line where there were none", async () => {
  expect(await page("/deliveries", viewer)).toMatch(/No request came in 7 days\.[^]*Nothing was refused/);
  await storeAnswers(
    database.db,
    new Map([
      ["accepted", 40],
      ["no_match", 3],
    ]),
  );
  const text = await page("/deliveries", viewer);
  expect([...text.matchAll(/<desc [^>]*>(\d+) stored, [^;]*; (\d+) refused/g)].map(([, ...found]) => found)).toEqual([
    ["40", "3"],
    ["40", "3"],
  ]);
  expect(text.match(/<rect class="loss" x=/g)).toHaveLength(2);
});

test("tells how late events were received and applied, by day", async () => {
  const seq = await storeEvent(database.db, "order.created", sampleOrder());
  await applyBatch(applyDeps(database.db), [seq]);
  await database
    .db("inbox.progress")
    .where({ seq })
    .update({
      event_at: database.db.raw("arrived_at - interval '7 seconds'"),
      settled_at: database.db.raw("arrived_at + interval '40 milliseconds'"),
    });
  const text = await page("/deliveries", viewer);
  const lags = text.matchAll(/data-name="((?:Received|Applied), .*?)">(.*?)</g);
  expect([...lags].map(([, name, lag]) => `${name}: ${lag}`)).toEqual([
    "Received, half: 7.0 s",
    "Received, 95 %: 7.0 s",
    "Received, 99 %: 7.0 s",
    "Applied, half: 40 ms",
    "Applied, 95 %: 40 ms",
    "Applied, 99 %: 40 ms",
  ]);
  expect(text).toContain("All events of these days");
});

test("tells how much of what the service had to announce has come", async () => {
  await expect.poll(() => page("/deliveries", viewer)).toMatch(/\d+ of \d+<\/p> <p> changes/);
});

test("lists secrets without their values, to those who may see them", async () => {
  const value = "whsec_bXkgc2lnbmluZyBzZWNyZXQgb2YgMzIgYnl0ZXM=";
  const { keyId, ciphertext } = testEncryption.encrypt(value);
  await database.db("receiver.secrets").insert({
    id: "db:0123456789",
    ciphertext,
    key_id: keyId,
    note: "\u202e<script>note",
  });
  const [theirs, mine] = [await page("/deliveries", viewer), await page("/deliveries")];
  expect(theirs).not.toContain("db:0123456789");
  expect(mine).toContain("db:0123456789");
  expect(mine).toContain("&lt;script&gt;note");
  expect(mine).not.toContain(value);
});

test("home says that nothing could be stored, or that every signature was refused", async () => {
  // Before the first event home shows the first steps.
  await storeEvent(database.db, "order.created", sampleOrder());
  await storeAnswers(
    database.db,
    new Map([
      ["unavailable", 2],
      ["accepted", 1],
    ]),
  );
  expect(await page("/", viewer)).toContain(
    "2 deliveries could not be stored at the first attempt in the last 24 hours",
  );
  await database.db("receiver.answers_by_minute").delete();
  await storeAnswers(database.db, new Map([["no_match", 9]]));
  expect(await page("/", viewer)).toContain(
    "Every delivery of the last 24 hours was refused for its signature, 9 in all",
  );
});
