import { beforeEach, describe, expect, test } from "vitest";
import { registerEvents } from "../../../src/parts/browse/events/command.ts";
import { UsageError } from "../../../src/platform/errors.ts";
import { emptyInbox, progressOf, storeRow } from "../../inbox/stored-events.ts";
import { runCommand } from "./command-line.ts";
import { useTestDatabase } from "../../support/use-database.ts";

const daySeconds = 86_400;
// Written as escapes: what a terminal obeys must not stand in a source file.
const hostile = "order\u001b[2J\u0007\u009b31m\u007fx";
const obeyed = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/;

const database = useTestDatabase();
beforeEach(() => emptyInbox(database.db));

const events = (...args: string[]) =>
  runCommand(registerEvents, ["events", ...args], { env: { DATABASE_URL: database.url } });

async function listed(...args: string[]): Promise<number[]> {
  const { out, error } = await events("list", "--json", ...args);
  expect(error).toBeNull();
  return (JSON.parse(out) as { events: { seq: number }[] }).events.map(({ seq }) => seq);
}

describe("tallyhook events list", () => {
  test("shows the newest first, and filters by state, type and object", async () => {
    const paid = { type: "order.paid", resourceType: "order", resourceId: "ord_1" };
    const a = await storeRow(database.db, { ...paid, state: "applied" });
    const b = await storeRow(database.db, { ...paid, state: "dead", resourceId: "ord_2" });
    const c = await storeRow(database.db, { state: "dead" });
    expect(await listed()).toEqual([c, b, a]);
    expect(await listed("--limit", "2")).toEqual([c, b]);
    expect(await listed("--state", "dead")).toEqual([c, b]);
    expect(await listed("--type", "order.paid")).toEqual([b, a]);
    expect(await listed("--resource", "ord_2")).toEqual([b]);
    expect(await listed("--state", "dead", "--type", "order.paid", "--resource", "ord_1")).toEqual([]);
  });

  test("counts all events, whatever the filter shows", async () => {
    await storeRow(database.db);
    await storeRow(database.db, { state: "dead", reason: "body: not JSON in UTF-8" });
    const { out } = await events("list", "--state", "dead");
    expect(out).toContain("body: not JSON in UTF-8");
    expect(out).toContain("received 1, applied 0, stale 0, ignored 0, failed 0, dead 1");
  });

  test.each([
    ["--state", "done"],
    ["--limit", "0"],
    ["--limit", "10001"],
    ["--limit", "1e3"],
    ["--limit", "-1"],
    ["--limit", ""],
  ])("refuses %s %j as wrong usage", async (...args) => {
    const { out, err, error } = await events("list", ...args);
    expect(error).toMatchObject({ code: "commander.invalidArgument" });
    expect(err).toContain(args[0]);
    expect(out).toBe("");
  });

  test.each([
    ["type", { type: hostile }],
    ["object", { resourceType: "order", resourceId: hostile }],
    ["reason", { reason: `type "${hostile}" changes nothing here` }],
  ])("passes no control characters of the %s to the terminal", async (_, row) => {
    await storeRow(database.db, { state: "ignored", ...row });
    const { out } = await events("list");
    expect(out).toContain("\ufffd");
    expect(out).not.toMatch(obeyed);
  });
});

describe("tallyhook events show", () => {
  test("shows every body of an id, and one event by its number", async () => {
    const eventId = "evt_1";
    const [one, two] = ['{"n":1}', '{"n":2}'];
    const first = await storeRow(database.db, { eventId, raw: Buffer.from(one) });
    const second = await storeRow(database.db, {
      eventId,
      raw: Buffer.from(two),
      state: "dead",
      reason: "why",
    });
    const byId = await events("show", eventId);
    expect(byId.out).toContain(one);
    expect(byId.out).toContain(two);
    expect(byId.out).toMatch(/reason +why/);
    const bySeq = await events("show", String(first), "--json");
    const same = { event_id: eventId, raw: one, same_id: [second] };
    expect(JSON.parse(bySeq.out)).toMatchObject({ seq: first, ...same });
    expect((await events("show", String(second))).out).toMatch(new RegExp(`same_id +${first}\n`));
  });

  test("gives the exact bytes of a body that is no text", async () => {
    const raw = Buffer.from([0x7b, 0xff, 0x7d]);
    const seq = await storeRow(database.db, { eventId: "evt_bytes", raw });
    const { out } = await events("show", String(seq), "--json");
    expect(JSON.parse(out)).toMatchObject({ raw_base64: raw.toString("base64") });
  });

  test.each([
    ["a NUL", '{"data":{"object":{"note":"a\\u0000b"}}}', true],
    ["a U+FFFD that came as such", '{"data":{"object":{"note":"a\ufffdb"}}}', false],
    ["no JSON", "{", false],
  ])("says whether the mirror holds other text than was sent: %s", async (_, raw, expected) => {
    await storeRow(database.db, { eventId: "evt_1", raw: Buffer.from(raw) });
    expect((await events("show", "evt_1")).out).toMatch(new RegExp(`replaced_text +${expected}`));
    expect(JSON.parse((await events("show", "evt_1", "--json")).out)).toMatchObject({
      replaced_text: expected,
    });
  });

  test("says whether the bytes are those that arrived", async () => {
    const seq = await storeRow(database.db, { eventId: "evt_1" });
    expect((await events("show", "evt_1")).out).toMatch(/rewritten +false/);
    await database
      .db("inbox.receipts")
      .where({ seq })
      .update({ raw: Buffer.from("{}") });
    expect((await events("show", "evt_1")).out).toMatch(/rewritten +true/);
  });

  test("says that bytes were pruned", async () => {
    await storeRow(database.db, { eventId: "evt_old", state: "applied", raw: null });
    expect((await events("show", "evt_old")).out).toContain("(the payload was pruned)");
    expect(JSON.parse((await events("show", "evt_old", "--json")).out)).toMatchObject({
      raw: null,
    });
  });

  test("passes no control characters of the bytes or the columns to the terminal", async () => {
    const raw = Buffer.from(`{"name":"\u001b]0;owned\u0007 ${hostile}"}\n`);
    await storeRow(database.db, { eventId: "evt_1", raw, type: hostile, reason: hostile });
    const { out } = await events("show", "evt_1");
    expect(out).toContain("owned");
    expect(out).not.toMatch(obeyed);
  });

  test("an unknown event is an error that says where to look", async () => {
    const { error, out } = await events("show", "evt_none");
    expect(error).toBeInstanceOf(UsageError);
    expect(String(error)).toContain('"evt_none"');
    expect(out).toBe("");
  });
});

describe("tallyhook events replay", () => {
  test("puts all dead events back that still have their bytes, and no others", async () => {
    const dead = await storeRow(database.db, { state: "dead", attempts: 16, reason: "why" });
    const pruned = await storeRow(database.db, { state: "dead", raw: null });
    const applied = await storeRow(database.db, { state: "applied" });
    const { out, error } = await events("replay", "--dead");
    expect(error).toBeNull();
    expect(out).toMatch(/^1 event put back/);
    expect(await progressOf(database.db, dead)).toMatchObject({ state: "received", attempts: 0 });
    expect(await progressOf(database.db, pruned)).toMatchObject({ state: "dead" });
    expect(await progressOf(database.db, applied)).toMatchObject({ state: "applied" });
  });

  test("puts named events back, by id and by number", async () => {
    const byId = await storeRow(database.db, { eventId: "evt_1", state: "applied" });
    const bySeq = await storeRow(database.db, { state: "ignored" });
    expect((await events("replay", "evt_1", String(bySeq))).out).toMatch(/^2 events put back/);
    for (const seq of [byId, bySeq]) {
      expect(await progressOf(database.db, seq)).toMatchObject({ state: "received" });
    }
  });

  test("knows a number before an id of the same digits, and an id of digits that no event has as its number", async () => {
    const first = await storeRow(database.db, { state: "applied" });
    const called = await storeRow(database.db, { eventId: String(first), state: "applied" });
    const other = await storeRow(database.db, { eventId: "987654321", state: "applied" });
    expect((await events("replay", String(first), "987654321")).out).toMatch(/^2 events put back/);
    const states = await Promise.all([first, called, other].map((seq) => progressOf(database.db, seq)));
    expect(states.map(({ state }) => state)).toEqual(["received", "applied", "received"]);
  });

  test("puts nothing back when one of the named events is unknown", async () => {
    const seq = await storeRow(database.db, { eventId: "evt_1", state: "applied" });
    expect((await events("replay", "evt_1", "evt_none")).error).toBeInstanceOf(UsageError);
    expect(await progressOf(database.db, seq)).toMatchObject({ state: "applied" });
  });

  test("refuses an event whose bytes were pruned, says why, and puts none of the others back", async () => {
    const pruned = await storeRow(database.db, {
      eventId: "evt_old",
      state: "applied",
      raw: null,
    });
    const whole = await storeRow(database.db, { eventId: "evt_1", state: "applied" });
    const { out, error } = await events("replay", "evt_1", "evt_old");
    expect(error).toBeInstanceOf(UsageError);
    expect(String(error)).toContain(`The payloads of evt_old (number ${pruned}) were pruned`);
    expect(out).toBe("");
    for (const seq of [pruned, whole]) {
      expect(await progressOf(database.db, seq)).toMatchObject({ state: "applied" });
    }
  });

  test("says of dead events without bytes that they stay", async () => {
    await storeRow(database.db, { state: "dead", raw: null });
    const { out, err, error } = await events("replay", "--dead");
    expect(error).toBeNull();
    expect(out).toMatch(/^0 events put back/);
    expect(err).toContain("1 dead event has no stored payload");
  });

  test("without a name it is wrong usage, and says what to name", async () => {
    const { err, error } = await events("replay");
    // What commander refuses is printed by commander; of other errors the program prints the message.
    const printed = error instanceof UsageError ? error.message : err;
    expect(printed).toContain("--dead");
  });
});

describe("tallyhook events prune", () => {
  const age = (days: number) => ({
    state: "applied" as const,
    receivedAgoSeconds: days * daySeconds,
  });
  const pruned = () => database.db("inbox.receipts").whereNull("raw").pluck<string[]>("seq");

  test.each(["90", "90d"])("empties what is older than %s, and keeps the rows", async (days) => {
    const old = await storeRow(database.db, age(91));
    await storeRow(database.db, age(89));
    await storeRow(database.db, { ...age(91), state: "dead" });
    expect((await events("prune", "--older-than", days, "--dry-run")).out).toMatch(/^1 payload would be deleted/);
    expect(await pruned()).toEqual([]);
    expect((await events("prune", "--older-than", days)).out).toMatch(/^1 payload was deleted; the rows stay/);
    expect((await pruned()).map(Number)).toEqual([old]);
    expect((await events("prune", "--older-than", days)).out).toMatch(/^0 payloads were deleted/);
  });

  test.each(["", " ", "d", "-1", "1.5", "1e3", "90dd", "90h", "ninety", "36501", "0x10", "NaN"])(
    "refuses to take %j for days, and touches nothing",
    async (days) => {
      await storeRow(database.db, age(40_000));
      const { error } = await events("prune", "--older-than", days);
      expect(error).toMatchObject({ code: "commander.invalidArgument" });
      expect(await pruned()).toEqual([]);
    },
  );

  test("refuses to guess an age", async () => {
    await storeRow(database.db, age(40_000));
    expect((await events("prune")).error).toMatchObject({
      code: "commander.missingMandatoryOptionValue",
    });
    expect(await pruned()).toEqual([]);
  });
});
