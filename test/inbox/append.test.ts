import { randomBytes } from "node:crypto";
import { setImmediate, setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { InboxUnavailable } from "../../src/core/inbox/append.ts";
import { findEvents } from "../../src/core/inbox/queries.ts";
import { newestEvents } from "../../src/core/inbox/search-events.ts";
import type { VerifiedEvent } from "../../src/core/inbox/store-batch.ts";
import { type DatabaseProxy, startDatabaseProxy } from "./database-proxy.ts";
import { type InboxStand, openInbox } from "./inbox-stand.ts";
import { emptyInbox, sha256, verifiedEvent } from "./stored-events.ts";
import { eventually } from "../support/eventually.ts";
import { useTestDatabase } from "../support/use-database.ts";

const database = useTestDatabase();
const open: { close(): Promise<void> }[] = [];
beforeEach(() => emptyInbox(database.db));
afterEach(async () => {
  await Promise.all(open.splice(0).map((stand) => stand.close()));
  // A connection that was given up goes on at the server, and might store its rows in the next test.
  await eventually("no session of the inbox is at work", async () => {
    const { rows } = await database.db.raw<{ rows: unknown[] }>(
      "select from pg_stat_activity where datname = current_database() and application_name = 'test inbox' and state <> 'idle'",
    );
    return rows.length === 0;
  });
});

function inbox(...args: [string?, Parameters<typeof openInbox>[1]?]): InboxStand {
  const stand = openInbox(args[0] ?? database.url, args[1]);
  open.push(stand);
  return stand;
}

const anEvent = (eventId: string, body: string | Buffer = `{"id":"${eventId}"}`) =>
  verifiedEvent({ eventId, raw: Buffer.from(body) });

/** Holds up every INSERT until it is called again. */
async function holdInserts(): Promise<() => Promise<void>> {
  const trx = await database.db.transaction();
  await trx.raw("lock table inbox.receipts in exclusive mode");
  return async () => {
    await trx.commit();
  };
}

/** Holds up the INSERT of this event alone until it is called again, and then is as if it had never been there. */
async function holdInsertOf({ createdAt, raw }: VerifiedEvent): Promise<() => Promise<void>> {
  const trx = await database.db.transaction();
  await trx("inbox.seen").insert({ created_at: createdAt, body: sha256(raw).slice(0, 32), seq: 0 });
  return async () => {
    await trx.rollback();
  };
}

async function untilInserting(): Promise<number> {
  for (;;) {
    const { rows } = await database.db.raw<{ rows: unknown[] }>(
      `select from pg_stat_activity where datname = current_database() and application_name = 'test inbox'
         and wait_event_type = 'Lock'`,
    );
    if (rows.length > 0) return rows.length;
    await sleep(5);
  }
}

const stored = () => database.db("inbox.events").orderBy("seq");

describe("storing an event", () => {
  test("commits it before it is acknowledged, ready to be applied", async () => {
    const { appender, batches } = inbox();
    expect(await appender.append(anEvent("evt_1"))).toEqual({ eventId: "evt_1", duplicate: false });
    expect(await stored()).toMatchObject([
      {
        event_id: "evt_1",
        type: "order.created",
        api_version: "2026-01-01",
        event_created_at: new Date("2026-03-01T12:00:00Z"),
        secret_id: "env-1",
        state: "received",
        attempts: 0,
        deliveries: 1,
      },
    ]);
    expect(batches).toEqual([[Number((await stored())[0].seq)]]);
  });

  test("keeps the bytes as they are: every byte value, an empty body, a large one", async () => {
    const { appender } = inbox();
    const bodies = [
      Buffer.from(Array.from({ length: 256 }, (_, n) => n)),
      Buffer.from(Array.from({ length: 256 }, (_, n) => 255 - n)),
      Buffer.alloc(0),
      Buffer.from('\ufeff{"a":"é 😀 \\u0000"}'),
      Buffer.from([0xff]),
      Buffer.from([0x00]),
      randomBytes(1024 * 1024),
      Buffer.from(`\\x4142 '"{},\\`),
    ];
    await Promise.all(bodies.map((body, n) => appender.append(anEvent(`evt_${n}`, body))));
    const rows = await database.db("inbox.receipts").orderBy("event_id");
    expect(rows.map(({ raw }) => sha256(raw as Buffer))).toEqual(bodies.map(sha256));
    expect(rows.map(({ raw_sha256 }) => (raw_sha256 as Buffer).toString("hex"))).toEqual(bodies.map(sha256));
  });

  test("leaves out what could not be extracted", async () => {
    const { appender } = inbox();
    await appender.append({
      ...anEvent("sha256:00"),
      type: null,
      apiVersion: null,
      createdAt: null,
    });
    expect(await stored()).toMatchObject([{ type: null, api_version: null, event_created_at: null }]);
  });
});

describe("repeats", () => {
  test("are duplicates and counted, in one batch and across batches", async () => {
    const { appender } = inbox();
    const first = await appender.append(anEvent("evt_1"));
    const again = await Promise.all(
      ["evt_1", "evt_2", "evt_2", "evt_1", "evt_2"].map((id) => appender.append(anEvent(id))),
    );
    expect(first.duplicate).toBe(false);
    expect(again.map(({ duplicate }) => duplicate)).toEqual([true, false, true, true, true]);
    await appender.close();
    const rows = await newestEvents(database.db, {}, { limit: 9 });
    expect(rows.map(({ event_id, deliveries }) => [event_id, deliveries])).toEqual([
      ["evt_2", 3],
      ["evt_1", 3],
    ]);
  });

  test("of one id with other bytes are stored as well", async () => {
    const { appender } = inbox();
    const answers = await Promise.all(["a", "b", "a"].map((body) => appender.append(anEvent("evt_1", body))));
    expect(answers.map(({ duplicate }) => duplicate)).toEqual([false, false, true]);
    expect((await findEvents(database.db, "evt_1")).map(({ raw }) => String(raw)).sort()).toEqual(["a", "b"]);
  });

  test("of a row that a worker holds do not wait for it", async () => {
    const { appender } = inbox();
    await appender.append(anEvent("evt_1"));
    const worker = await database.db.transaction();
    try {
      await worker.raw("select from inbox.progress for update");
      expect(await appender.append(anEvent("evt_1"))).toMatchObject({ duplicate: true });
      expect(await appender.append(anEvent("evt_2"))).toMatchObject({ duplicate: false });
    } finally {
      await worker.rollback();
    }
  });
});

describe("group commit", () => {
  test("has one INSERT in flight; what arrives meanwhile goes together, in the order of arrival", async () => {
    const { appender, batches } = inbox(undefined, { maxRowsPerFlush: 40 });
    const release = await holdInserts();
    const first = appender.append(anEvent("evt_first"));
    await untilInserting();
    const rest = Array.from({ length: 100 }, (_, n) => appender.append(anEvent(`evt_${n}`)));
    expect(await untilInserting()).toBe(1);
    await release();
    await Promise.all([first, ...rest]);
    expect(batches.map(({ length }) => length)).toEqual([1, 40, 40, 20]);
    const seqs = batches.flat();
    expect(seqs).toEqual([...seqs].sort((a, b) => a - b));
    const second = await database
      .db("inbox.receipts")
      .whereIn("seq", batches[1] ?? [])
      .pluck("event_id");
    expect(new Set(second)).toEqual(new Set(Array.from({ length: 40 }, (_, n) => `evt_${n}`)));
  });

  test("bounds a flush by bytes as well, and still takes a body larger than that", async () => {
    const { appender, batches } = inbox(undefined, { maxBytesPerFlush: 1_000 });
    const release = await holdInserts();
    const first = appender.append(anEvent("evt_first"));
    await untilInserting();
    const sizes = [600, 300, 300, 5_000, 10];
    const rest = sizes.map((size, n) => appender.append(anEvent(`evt_${n}`, Buffer.alloc(size, n))));
    await release();
    await Promise.all([first, ...rest]);
    expect(batches.map(({ length }) => length)).toEqual([1, 2, 1, 1, 1]);
  });

  test.each([
    ["rows", { maxWaitingRows: 3 }, 10],
    ["bytes", { maxWaitingBytes: 350 }, 100],
  ])("refuses what would wait past the bound in %s, and nothing else", async (_name, limits, size) => {
    const { appender } = inbox(undefined, limits);
    const release = await holdInserts();
    const first = appender.append(anEvent("evt_first", Buffer.alloc(size)));
    await untilInserting();
    const waiting = [1, 2, 3].map((n) => appender.append(anEvent(`evt_${n}`, Buffer.alloc(size, n))));
    await expect(appender.append(anEvent("evt_4", Buffer.alloc(size, 4)))).rejects.toThrow(InboxUnavailable);
    await release();
    expect(await Promise.all([first, ...waiting])).toHaveLength(4);
    expect(await appender.append(anEvent("evt_5"))).toMatchObject({ duplicate: false });
    expect(await stored()).toHaveLength(5);
  });

  test("stores what it took before it closes, and takes nothing after", async () => {
    const { appender } = inbox();
    const taken = Array.from({ length: 20 }, (_, n) => appender.append(anEvent(`evt_${n}`)));
    await appender.close();
    expect(await Promise.all(taken)).toHaveLength(20);
    await expect(appender.append(anEvent("evt_late"))).rejects.toThrow(InboxUnavailable);
    expect(await stored()).toHaveLength(20);
  });
});

describe("a value that Postgres refuses", () => {
  test.each([
    ["an id with NUL", { eventId: "evt\u0000bad" }],
    ["a type with NUL", { type: "order\u0000" }],
    ["a time that is none", { createdAt: "a time" }],
  ])("(%s) costs that row its extracts, and its neighbours nothing", async (_name, fields) => {
    const { appender, batches } = inbox();
    const bad = { ...anEvent("evt_bad", Buffer.from([0, 255, 7])), ...fields };
    const events = [...Array(9).keys()].map((n) => anEvent(`evt_${n}`));
    const answers = await Promise.all(
      [...events, bad, ...events.slice(0, 2), { ...bad }].map((e) => appender.append(e)),
    );
    const bareId = `sha256:${sha256(bad.raw)}`;
    expect(answers[9]).toEqual({ eventId: bareId, duplicate: false });
    expect(answers.slice(10).map(({ duplicate }) => duplicate)).toEqual([true, true, true]);
    expect(answers[12]?.eventId).toBe(bareId);
    const [row] = await findEvents(database.db, bareId);
    expect(row).toMatchObject({ type: null, api_version: null, state: "received", raw: bad.raw });
    expect(await stored()).toHaveLength(10);
    expect(batches.flat()).toHaveLength(10);
    expect(await appender.append({ ...bad })).toEqual({ eventId: bareId, duplicate: true });
    await appender.close();
    expect((await findEvents(database.db, bareId))[0]?.deliveries).toBe(3);
  });

  test("a lone surrogate in an id is no reason to take a new event for a repeat", async () => {
    const { appender } = inbox();
    const answer = await appender.append({ ...anEvent("evt\ud800"), raw: Buffer.from("x") });
    expect(answer.duplicate).toBe(false);
    expect(await stored()).toMatchObject([{ event_id: "evt\ufffd" }]);
  });
});

describe("when the database does not answer", () => {
  let proxy: DatabaseProxy;
  beforeEach(async () => {
    proxy = await startDatabaseProxy(database.url);
    open.push(proxy);
  });

  test("a hung connection is given up with all that waits behind it, and not used again", async () => {
    const stand = inbox(proxy.url, { flushTimeoutMs: 1_000 });
    await stand.appender.append(anEvent("evt_before"));
    proxy.freeze();
    const startedMs = performance.now();
    const hung = [1, 2, 3].map((n) => stand.appender.append(anEvent(`evt_${n}`)));
    let refused = 0;
    for (const each of hung) each.catch(() => (refused += 1));
    await expect(hung[0]).rejects.toThrow(InboxUnavailable);
    await setImmediate();
    expect(refused).toBe(3);
    const outcomes = await Promise.allSettled(hung);
    // Not one time limit after the other.
    expect(performance.now() - startedMs).toBeLessThan(3_000);
    for (const outcome of outcomes) {
      expect(outcome).toMatchObject({
        status: "rejected",
        reason: expect.any(InboxUnavailable) as unknown,
      });
    }
    proxy.thaw();
    expect(await stand.appender.append(anEvent("evt_after"))).toMatchObject({ duplicate: false });
  });

  test("a statement that waits for a lock is given up; should it commit later, it is one event", async () => {
    const { appender } = inbox(undefined, { flushTimeoutMs: 500 });
    const release = await holdInsertOf(anEvent("evt_1"));
    await expect(appender.append(anEvent("evt_1"))).rejects.toThrow(InboxUnavailable);
    // On a connection of its own: the other one is still in its statement.
    expect(await appender.append(anEvent("evt_2"))).toMatchObject({ duplicate: false });
    await release();
    await appender.append(anEvent("evt_1"));
    expect(await stored()).toHaveLength(2);
  });

  test("down: refused at once; back: taken again, without a restart", async () => {
    const { appender } = inbox(proxy.url);
    await appender.append(anEvent("evt_1"));
    await proxy.goDown();
    for (let n = 0; n < 3; n++) {
      const startedMs = performance.now();
      await expect(appender.append(anEvent("evt_2"))).rejects.toThrow(InboxUnavailable);
      expect(performance.now() - startedMs).toBeLessThan(1_900);
    }
    await proxy.comeBack();
    expect(await appender.append(anEvent("evt_2"))).toMatchObject({ duplicate: false });
    expect(await stored()).toHaveLength(2);
  });

  test("the outcome of a flush that was cut is a refusal, never an acknowledgement", async () => {
    const { appender } = inbox(proxy.url);
    await appender.append(anEvent("evt_1"));
    const release = await holdInserts();
    const cut = appender.append(anEvent("evt_2"));
    await untilInserting();
    await proxy.goDown();
    await expect(cut).rejects.toThrow(InboxUnavailable);
    await release();
    await proxy.comeBack();
  });
});

test("receivers with the same events in other orders store each once, and do not wait for each other in a circle", async () => {
  const stands = [inbox(), inbox(), inbox()];
  const untilAllWait = async () => {
    while ((await untilInserting()) < stands.length) await sleep(5);
  };
  // While its first flush waits, all that comes goes together into the second.
  const letFirstGo = await holdInsertOf(anEvent("evt_first"));
  const firsts = stands.map(({ appender }) => appender.append(anEvent("evt_first")));
  await untilAllWait();
  const events = ["a", "b", "c", "d", "e", "f", "g"].map((name) => anEvent(`evt_${name}`));
  const seconds = stands.map(({ appender }, n) =>
    Promise.all((n === 1 ? [...events].reverse() : events).map((each) => appender.append(each))),
  );
  // Which now stops half-way.
  const letMiddleGo = await holdInsertOf(anEvent("evt_d"));
  await letFirstGo();
  const answers = await Promise.all(firsts);
  await untilAllWait();
  await letMiddleGo();
  answers.push(...(await Promise.all(seconds)).flat());
  expect(answers.filter(({ duplicate }) => !duplicate)).toHaveLength(1 + events.length);
  expect(await stored()).toHaveLength(1 + events.length);
});
