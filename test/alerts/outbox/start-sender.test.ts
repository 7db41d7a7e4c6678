import { afterEach, beforeEach, expect, test } from "vitest";
import { giveUpAfterMs } from "../../../src/parts/alerts/outbox/sender.ts";
import { eventually as eventuallyWithin } from "../../support/eventually.ts";
import { type ChannelServer, answering, startChannelServer } from "../channels/channel-server.ts";
import { startMailServer } from "../../support/mail-server.ts";
import { standingClock } from "../sweep-stand.ts";
import { type TestSender, outboxOf, queueMessage, startTestSender, storeAlert } from "./outbox-stand.ts";
import { useTestDatabase } from "../../support/use-database.ts";

const database = useTestDatabase();
let team: ChannelServer;
let other: ChannelServer;
const senders: TestSender[] = [];

beforeEach(async () => {
  await database.db("alerts.outbox").delete();
  await database.db("alerts.alerts").delete();
  [team, other] = await Promise.all([startChannelServer(), startChannelServer()]);
});
afterEach(async () => {
  await Promise.all([team.close(), other.close()]);
  await Promise.all(senders.splice(0).map((sender) => sender.close()));
});

const start = (...[urls, options]: [Record<string, string>?, Parameters<typeof startTestSender>[2]?]) => {
  const sender = startTestSender(database.db, urls ?? { team: `${team.url}/T0/hunter2` }, options);
  senders.push(sender);
  return sender;
};
/** A minute means that it hangs, never that the machine is slow. */
const eventually = <T>(what: string, ask: () => Promise<T> | T) => eventuallyWithin(what, ask, { withinMs: 60_000 });
const stagesSentTo = (server: ChannelServer): string[] =>
  server.posts.map(({ headers }) => String(headers["idempotency-key"]).split("/")[1] ?? "");
const settled = (rows: number) =>
  eventually(`${rows} rows are settled`, async () => {
    const outbox = await outboxOf(database.db);
    return outbox.filter(({ state }) => state !== "pending").length === rows && outbox;
  });
interface Trouble {
  state: string;
  last_error: string;
  maybe_sent: boolean;
  next_attempt_at: Date;
}
/** The first message that was not taken. */
const trouble = () =>
  eventually("a message was not taken", () => database.db<Trouble>("alerts.outbox").whereNotNull("last_error").first());

test("sends what is due, each channel its own, and no more", async () => {
  const alertId = await storeAlert(database.db, { key: "a" });
  for (const channel of ["team", "other"]) {
    await queueMessage(database.db, { channel, alertId, stage: "opened" });
  }
  await queueMessage(database.db, { channel: "team", alertId: null, stage: "digest" });
  await queueMessage(database.db, {
    channel: "team",
    alertId,
    stage: "later",
    dueInSeconds: 3_600,
  });
  start({ team: team.url, other: other.url });
  const outbox = await settled(3);
  expect(stagesSentTo(team).sort()).toEqual(["digest", "opened"]);
  expect(stagesSentTo(other)).toEqual(["opened"]);
  expect(outbox.map(({ state, attempts }) => [state, attempts])).toEqual([
    ["sent", 1],
    ["sent", 1],
    ["sent", 1],
    ["pending", 0],
  ]);
});

test("tells the stages of an alert in their order, however often one has to be tried", async () => {
  const alertId = await storeAlert(database.db, { key: "a" });
  for (const stage of ["one", "two", "three"]) {
    await queueMessage(database.db, { channel: "team", alertId, stage });
  }
  let refusals = 1;
  team.answerWith((response, request) => {
    const isRefused = String(request.headers["idempotency-key"]).includes("two") && refusals-- > 0;
    response.writeHead(isRefused ? 503 : 200).end();
  });
  start();
  await settled(3);
  expect(stagesSentTo(team)).toEqual(["one", "two", "two", "three"]);
  const keys = team.posts.map(({ headers }) => headers["idempotency-key"]);
  expect(new Set(keys.slice(1, 3)).size).toBe(1);
});

test("several senders share the work and send nothing twice", async () => {
  for (let n = 0; n < 60; n++) {
    const alertId = await storeAlert(database.db, { key: `a${n}` });
    await queueMessage(database.db, { channel: "team", alertId, stage: "opened" });
  }
  start();
  start();
  await settled(60);
  const keys = team.posts.map(({ headers }) => headers["idempotency-key"]);
  expect(keys).toHaveLength(60);
  expect(new Set(keys).size).toBe(60);
});

test("nobody is told of what is over, nor that it is over when they never heard of it", async () => {
  const over = await storeAlert(database.db, { key: "over", state: "resolved" });
  const open = await storeAlert(database.db, { key: "open" });
  await queueMessage(database.db, { channel: "team", alertId: over, stage: "opened" });
  await queueMessage(database.db, {
    channel: "team",
    alertId: over,
    stage: "resolved",
    action: "resolve",
  });
  await queueMessage(database.db, { channel: "team", alertId: open, stage: "opened" });
  start();
  await settled(3);
  await database.db("alerts.alerts").where({ id: open }).update({ state: "resolved" });
  await queueMessage(database.db, {
    channel: "team",
    alertId: open,
    stage: "resolved",
    action: "resolve",
  });
  const outbox = await settled(4);
  expect(outbox.map(({ state, last_error: why }) => [state, why])).toEqual([
    ["dropped", "resolved before it was sent"],
    ["dropped", "this channel did not get the alert itself"],
    ["sent", null],
    ["sent", null],
  ]);
  expect(stagesSentTo(team)).toEqual(["opened", "resolved"]);
});

test("a stage that waits for its time holds up no other, and is dropped when it was overtaken", async () => {
  const alertId = await storeAlert(database.db, { key: "a" });
  await queueMessage(database.db, {
    channel: "team",
    alertId,
    stage: "quiet",
    dueInSeconds: 3_600,
  });
  await queueMessage(database.db, { channel: "team", alertId, stage: "urgent" });
  start();
  await settled(1);
  await database.db.raw("update alerts.outbox set due_at = now() where state = 'pending'");
  const outbox = await settled(2);
  expect(outbox).toMatchObject([
    { stage: "quiet", state: "dropped", last_error: "a later transition was sent first" },
    { stage: "urgent", state: "sent" },
  ]);
  expect(stagesSentTo(team)).toEqual(["urgent"]);
});

test("a channel that hangs holds up no other, and its messages may have arrived", async () => {
  team.answerWith(() => {});
  const alertId = await storeAlert(database.db, { key: "a" });
  for (let n = 0; n < 20; n++) {
    const id = await storeAlert(database.db, { key: `b${n}` });
    await queueMessage(database.db, { channel: "team", alertId: id, stage: "opened" });
  }
  await queueMessage(database.db, { channel: "other", alertId, stage: "opened" });
  const sender = start({ team: `${team.url}/T0/hunter2`, other: other.url }, { sendTimeoutMs: 150 });
  await team.reached(4);
  await other.reached(1);
  expect(await trouble()).toMatchObject({
    state: "pending",
    maybe_sent: true,
    last_error: "127.0.0.1 could not be reached (no answer in time)",
  });
  expect(sender.logged()).toContain("an alert was not accepted");
  expect(sender.logged()).not.toContain("hunter2");
});

test("a channel that takes nothing is asked with its oldest message, and with one that was not tried", async () => {
  team.answerWith(answering(503));
  for (let n = 0; n < 30; n++) {
    const alertId = await storeAlert(database.db, { key: `a${n}` });
    await queueMessage(database.db, { channel: "team", alertId, stage: "opened" });
  }
  const clock = standingClock("2026-03-01T12:00:00.000Z");
  start({ team: team.url }, { concurrency: 4, clock });
  await team.reached(4);
  await eventually("the next look", () => {
    clock.advanceHours(1 / 60);
    return team.posts.length >= 6;
  });
  const tried = new Set(team.posts.slice(0, 6).map(({ body }) => body.match(/#[0-9a-f]{8}/)?.[0]));
  expect(tried.size).toBe(5);
  expect((await outboxOf(database.db))[0]).toMatchObject({
    state: "pending",
    last_error: "127.0.0.1 answered 503",
  });
});

test.each(["slack", "email"])(
  "a channel of %s that comes back after an outage gets the oldest message first, and all of them within a minute",
  async (kind) => {
    const mail = await startMailServer();
    const clock = standingClock("2026-03-01T12:00:00.000Z");
    let asked = 0;
    let isUp = false;
    team.answerWith((response, { headers }) => {
      asked++;
      response.writeHead(isUp ? 200 : 503).end();
      // It comes back between two looks: each begins with the oldest message.
      isUp ||= asked >= 24 && !String(headers["idempotency-key"]).includes("stage-3");
    });
    mail.refuseWith(451);
    for (let n = 0; n < 5; n++) {
      const alertId = await storeAlert(database.db, { key: `a${n}` });
      const dueInSeconds = n === 3 ? -600 : n;
      await queueMessage(database.db, {
        channel: "team",
        alertId,
        stage: `stage-${n}`,
        dueInSeconds: dueInSeconds - 60,
      });
    }
    const sender = start({ team: kind === "slack" ? team.url : mail.url }, { clock });
    const refused = () => (kind === "slack" ? asked : sender.logged().split("an alert was not accepted").length - 1);
    // Long enough for waits of a quarter of an hour, were they counted for each message.
    const tick = (): false => {
      clock.advanceHours(1 / 60);
      return false;
    };
    await eventually("the outage lasts", () => refused() >= 24 || tick());
    if (kind === "slack") await eventually("it is back", () => isUp || tick());
    mail.refuseWith(null);
    let seconds = 0;
    const sent = await eventually("all messages are sent", async () => {
      if (seconds++ < 60) clock.advanceHours(1 / 3_600);
      const rows = await database
        .db("alerts.outbox")
        .where("state", "sent")
        .orderBy("sent_at")
        .pluck<string[]>("stage");
      return rows.length === 5 && rows;
    });
    // A mail server may come back in the middle of a look, which then begins with another message.
    expect(sent.slice(0, kind === "slack" ? 1 : 2)).toContain("stage-3");
    if (kind === "email") expect(mail.mails).toHaveLength(5);
    await sender.close();
    await mail.close();
  },
  120_000,
);

test("one message that a channel cannot take holds up no other, though it is the oldest", async () => {
  team.answerWith((response, { headers }) => {
    const isPoison = String(headers["idempotency-key"]).includes("poison");
    response.writeHead(isPoison ? 500 : 200).end();
  });
  const clock = standingClock("2026-03-01T12:00:00.000Z");
  const first = await storeAlert(database.db, { key: "a" });
  await queueMessage(database.db, { channel: "team", alertId: first, stage: "poison" });
  start({ team: team.url }, { clock });
  await eventually("it has failed some times", () => {
    clock.advanceHours(1 / 60);
    return team.posts.length >= 5;
  });
  const second = await storeAlert(database.db, { key: "b" });
  await queueMessage(database.db, { channel: "team", alertId: second, stage: "other" });
  await eventually("the other is sent", async () => {
    clock.advanceHours(1 / 3_600);
    return (await outboxOf(database.db)).some(({ state }) => state === "sent");
  });
  expect(stagesSentTo(team)).toContain("other");
});

test("Retry-After holds the whole channel back for so long", async () => {
  team.answerWith(answering(429, "", { "retry-after": "600" }));
  const alertId = await storeAlert(database.db, { key: "a" });
  await queueMessage(database.db, { channel: "team", alertId, stage: "opened" });
  const sender = start();
  await team.reached(1);
  const row = await trouble();
  const waitMs = row.next_attempt_at.getTime() - Date.now();
  expect(waitMs).toBeGreaterThan(590_000);
  expect(row.maybe_sent).toBe(false);
  // Another message of the same channel does not get through either.
  const next = await storeAlert(database.db, { key: "b" });
  await queueMessage(database.db, { channel: "team", alertId: next, stage: "opened" });
  await sender.close();
  expect(team.posts).toHaveLength(1);
});

test("what is wrong with a message is final, logged, and does not hold up the next", async () => {
  team.answerWith((response, { headers }) => {
    response.writeHead(String(headers["idempotency-key"]).includes("bad") ? 400 : 200);
    response.end("invalid_payload");
  });
  const alertId = await storeAlert(database.db, { key: "a" });
  for (const stage of ["bad", "good"]) {
    await queueMessage(database.db, { channel: "team", alertId, stage });
  }
  const sender = start();
  const outbox = await settled(2);
  expect(outbox).toMatchObject([
    { state: "failed", attempts: 1, last_error: "127.0.0.1 answered 400 invalid_payload" },
    { state: "sent" },
  ]);
  expect(sender.logged()).toContain("an alert was given up");
});

test("what nobody took for three days is given up", async () => {
  team.answerWith(answering(500));
  for (const [stage, early] of [
    ["young", 60],
    ["old", -60],
  ] as const) {
    const alertId = await storeAlert(database.db, { key: stage });
    const dueInSeconds = early - giveUpAfterMs / 1_000;
    await queueMessage(database.db, { channel: "team", alertId, stage, dueInSeconds });
  }
  start();
  expect(await settled(1)).toMatchObject([{ state: "pending" }, { state: "failed", attempts: 1 }]);
});

test("what a killed sender held comes back, and is sent again with its key even when it is over", async () => {
  const alertId = await storeAlert(database.db, { key: "a", state: "resolved" });
  await queueMessage(database.db, { channel: "team", alertId, stage: "opened" });
  await queueMessage(database.db, {
    channel: "team",
    alertId,
    stage: "resolved",
    action: "resolve",
  });
  // As a claim leaves it.
  await database.db.raw(
    `update alerts.outbox set attempts = 1, maybe_sent = true, next_attempt_at = now() - interval '1 second'
     where stage = 'opened'`,
  );
  start();
  await settled(2);
  expect(stagesSentTo(team)).toEqual(["opened", "resolved"]);
});

test("messages for a channel that the settings no longer have are failed after an hour", async () => {
  const alertId = await storeAlert(database.db, { key: "a" });
  await queueMessage(database.db, { channel: "gone", alertId, stage: "old", dueInSeconds: -3_700 });
  await queueMessage(database.db, { channel: "gone", alertId, stage: "new" });
  start();
  expect(await settled(1)).toMatchObject([
    { state: "failed", last_error: "the settings have no such channel" },
    { state: "pending" },
  ]);
});

test("closing waits for what is being sent", async () => {
  const alertId = await storeAlert(database.db, { key: "a" });
  await queueMessage(database.db, { channel: "team", alertId, stage: "opened" });
  let release = (): void => {};
  team.answerWith((response) => void (release = () => response.end()));
  const sender = start();
  await team.reached(1);
  const closed = sender.close();
  release();
  await closed;
  expect(await outboxOf(database.db)).toMatchObject([{ state: "sent" }]);
});

test("a clock that is set back by a day does not silence a channel that was paused", async () => {
  const clock = standingClock("2026-03-02T12:00:00.000Z");
  team.answerWith(answering(503));
  await queueMessage(database.db, { channel: "team", alertId: null, stage: "opened" });
  start({ team: team.url }, { clock });
  await trouble();
  team.answerWith(answering(200));
  clock.advanceHours(-24);
  await settled(1);
  expect(await outboxOf(database.db)).toMatchObject([{ state: "sent" }]);
});
