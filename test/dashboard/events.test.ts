import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { laidOut } from "../../src/parts/browse/events/pages/laid-out.ts";
import { applyBatch } from "../../src/core/worker/apply-batch.ts";
import { emptyInbox, progressOf, storeRow } from "../inbox/stored-events.ts";
import { at, sampleCustomer, sampleOrder } from "../mirror/samples.ts";
import { untilWaiting } from "../support/until-waiting.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { applyDeps, emptyAll, poisonOrder, storeBody, storeEvent } from "../worker/worker-stand.ts";
import { type DashboardStand, openDashboard, send, signedIn } from "./dashboard-stand.ts";

const database = useTestDatabase();
let dashboard: DashboardStand;
/** Cookies by what their owners may do. */
let viewer: string;
let operator: string;
let support: string;

beforeAll(async () => {
  dashboard = await openDashboard(database);
  viewer = (await signedIn(database.db, ["viewer"])).cookie;
  operator = (await signedIn(database.db, ["operator"])).cookie;
  support = (await signedIn(database.db, ["operator", "support"])).cookie;
});
afterAll(() => dashboard.close());
beforeEach(() => emptyAll(database.db));

async function page(path: string, cookie = operator): Promise<{ status: number; text: string }> {
  const answer = await send(`${dashboard.url}${path}`, { cookie });
  return { status: answer.status, text: await answer.text() };
}

const post = (path: string, form: Record<string, string>, cookie = operator) =>
  send(`${dashboard.url}${path}`, { cookie, form });

/** The numbers of the events that a list shows. */
const listed = ({ text }: { text: string }): number[] =>
  [...text.matchAll(/<td class="number"[^>]*><a href="\/events\/(\d+)"/g)].map(([, seq]) => Number(seq));

const fieldOf = (text: string, name: string): string =>
  new RegExp(`name="${name}"\\s+value="([^"]*)"`).exec(text)?.[1] ?? "";

const applied = async (type: string, object: unknown): Promise<number> => {
  const seq = await storeEvent(database.db, type, object);
  await applyBatch(applyDeps(database.db), [seq]);
  return seq;
};

const audited = (action: string) =>
  database
    .db("people.audit")
    .where({ action })
    .orderBy("id", "desc")
    .first<{ subject_id: string; after: unknown } | undefined>();

const jsonLines = `{
  "a": [
    1.10,
    -2e+400,
    {
      "b": "x\\"{,}"
    }
  ],
  "c": {},
  "d": []
}`;

/** Applied events that nothing tells apart. */
async function storeMany(count: number): Promise<void> {
  await database.db.raw(
    `with stored as (
       insert into inbox.receipts (seq, event_id, raw_sha256, type, received_at, secret_id)
       select nextval('inbox.event_numbers'), 'evt_many_' || n, sha256(n::text::bytea), 'order.created', now(), 'env-1'
       from generate_series(1, ?::int) n returning seq
     )
     insert into inbox.progress (seq, state) select seq, 'applied' from stored`,
    [count],
  );
}

describe("the list of events", () => {
  test("filters by state, type, object, event id and time, and says in its address which", async () => {
    const { db } = database;
    const order = { type: "order.paid", resourceType: "order", resourceId: "ord_1" };
    const a = await storeRow(db, { ...order, state: "applied", receivedAgoSeconds: 7_200 });
    const b = await storeRow(db, { ...order, state: "dead", eventId: "evt_b" });
    const c = await storeRow(db, { state: "failed", dueInSeconds: 60 });
    expect(listed(await page("/events"))).toEqual([c, b, a]);
    expect(listed(await page("/events?state=dead"))).toEqual([b]);
    expect(listed(await page("/events?state=failed"))).toEqual([c]);
    expect(listed(await page("/events?type=order.paid"))).toEqual([b, a]);
    expect(listed(await page("/events?object=ord_1&state=applied"))).toEqual([a]);
    expect(listed(await page("/events?id=evt_b"))).toEqual([b]);
    const anHourAgo = new Date(Date.now() - 3_600_000).toISOString().slice(0, 16);
    expect(listed(await page(`/events?from=${anHourAgo}`))).toEqual([c, b]);
    expect(listed(await page(`/events?until=${anHourAgo}`))).toEqual([a]);
  });

  test.each([
    ["state=gone", "“gone” is not one of received, applied"],
    ["from=yesterday", "is not a time such as"],
    ["until=2026-02-30T10:00", "is not a time such as"],
    ["before=-1", "“-1” is not a whole number"],
  ])("says that it cannot read ?%s, and lists nothing", async (query, said) => {
    await storeRow(database.db);
    const answer = await page(`/events?${query}`);
    expect([answer.status, listed(answer)]).toEqual([400, []]);
    expect(answer.text).toContain(said);
  });

  test("goes on with older events by a link, and keeps the filter", async () => {
    const seqs: number[] = [];
    for (let n = 0; n < 52; n++) seqs.push(await storeRow(database.db, { state: "dead" }));
    const first = await page("/events?state=dead");
    expect(listed(first)).toEqual(seqs.slice(2).reverse());
    const older = /rel="next" href="([^"]*)"/.exec(first.text)?.[1]?.replaceAll("&amp;", "&") ?? "";
    expect(older).toContain("state=dead");
    expect(listed(await page(older))).toEqual([seqs[1], seqs[0]]);
  });

  test("says how far back it searched for what no index finds, and searches on by a link", async () => {
    const wanted = await storeRow(database.db, { type: "rare.type", state: "applied" });
    await storeMany(10_000);
    const { cookie } = await signedIn(database.db, ["viewer"]);
    const first = await (await send(`${dashboard.url}/events?type=rare.type`, { cookie })).text();
    expect(first).toContain(`Searched back to event ${wanted + 1}, of `);
    expect(first).not.toContain(`href="/events/${wanted}"`);
    const on = /href="([^"]*)"\s*>\s*Search on/.exec(first)?.[1]?.replaceAll("&amp;", "&") ?? "";
    const second = await (await send(`${dashboard.url}${on}`, { cookie })).text();
    expect(second).toContain(`href="/events/${wanted}"`);
    expect(second).not.toContain("Searched back");
  });

  test("shows boxes to choose by and the replay of all only to who may replay", async () => {
    await storeRow(database.db);
    const [theirs, mine] = [await page("/events?state=received", viewer), await page("/events?state=received")];
    expect(theirs.text).not.toMatch(/checkbox|replay\/confirm/);
    expect(mine.text).toMatch(/type="checkbox"[^]*replay\/confirm\?state=received&amp;all=yes/);
  });
});

describe("the page of an event", () => {
  test("tells field by field what it changed, the feed's change, and since when something else stands", async () => {
    const first = await applied("order.created", sampleOrder({ id: "ord_1", status: "pending" }));
    const second = await applied(
      "order.succeeded",
      sampleOrder({ id: "ord_1", status: "succeeded", updated_at: at(5) }),
    );
    const { text } = await page(`/events/${second}`);
    expect(text).toMatch(/changed the mirror/);
    expect(text).toMatch(/status[^]*pending[^]*succeeded/);
    expect(text).toContain("order.paid");
    expect(text).toContain('href="/objects/order/ord_1"');
    expect((await page(`/events/${first}`)).text).toMatch(
      new RegExp(`It won\\. Since then[^]*href="/events/${second}"`),
    );
  });

  test("tells against which event a stale one was late", async () => {
    const later = await applied("order.succeeded", sampleOrder({ id: "ord_1", updated_at: at(9) }));
    const late = await applied("order.created", sampleOrder({ id: "ord_1", status: "pending", updated_at: at(1) }));
    const { text } = await page(`/events/${late}`);
    expect(text).toMatch(new RegExp(`came late[^]*href="/events/${later}"[^]*stood\\s+already`));
  });

  test("tells which event had shown the same before", async () => {
    const first = await applied("order.created", sampleOrder({ id: "ord_1" }));
    const again = await applied("order.updated", sampleOrder({ id: "ord_1" }));
    expect((await progressOf(database.db, again)).state).toBe("stale");
    const { text } = await page(`/events/${again}`);
    expect(text).toMatch(new RegExp(`was known[^]*shown before by[^]*href="/events/${first}"`));
  });

  test("tells the same of an event whose bytes were pruned", async () => {
    const seq = await applied("order.created", sampleOrder({ id: "ord_1", status: "pending" }));
    await database.db("inbox.receipts").where({ seq }).update({ raw: null });
    const { text } = await page(`/events/${seq}`);
    expect(text).toMatch(/changed the mirror/);
    expect(text).not.toContain("/preview");
  });

  test("shows personal fields to who may see them, and records it; nobody else sees them, nor the bytes", async () => {
    const seq = await applied("customer.created", sampleCustomer({ email: "jane.doe@example.com" }));
    const [theirs, operators] = [await page(`/events/${seq}`, viewer), await page(`/events/${seq}`)];
    expect(theirs.text).not.toContain("jane.doe@example.com");
    expect(theirs.text).toContain("hidden: personal");
    expect(operators.text.split("jane.doe@example.com").length - 1).toBe(2);
    expect(await audited("event.read")).toMatchObject({ after: { shown: ["bytes"] } });
    expect((await page(`/events/${seq}`, support)).text.split("jane.doe@example.com").length).toBeGreaterThan(3);
    expect(await audited("event.read")).toMatchObject({
      subject_id: String(seq),
      after: { shown: ["bytes", "personal fields"] },
    });
  });

  test.each([
    ["not JSON", Buffer.from("<script>alert(1)</script> not json")],
    ["bytes that are no text", Buffer.from([0xff, 0xfe, 0x00, 0x1b, 0x5b, 0x33, 0x31, 0x6d])],
    ["a hundred thousand levels", Buffer.from("[".repeat(100_000))],
    ["a megabyte", Buffer.from(JSON.stringify({ id: "evt_big", type: "x".repeat(1_000_000) }))],
    ["marks of direction", Buffer.from('{"id":"evt_1","type":"order.\u202egnp.exe"}')],
    [
      "names of Object",
      Buffer.from('{"id":"e","type":"order.created","data":{"object":{"__proto__":{"a":1},"id":"constructor"}}}'),
    ],
  ])("stands hostile bytes: %s", async (_, raw) => {
    const seq = await storeBody(database.db, raw);
    await applyBatch(applyDeps(database.db), [seq]);
    for (const path of [`/events/${seq}`, `/events/${seq}/preview`, "/events"]) {
      const { status, text } = await page(path);
      expect([path, status]).toEqual([path, 200]);
      expect(text).not.toContain("<script>alert");
      expect(text).not.toMatch(/[\u0000\u001b]/);
      expect(text.length).toBeLessThan(2_000_000);
    }
  });
});

describe("a body, laid out", () => {
  test.each([
    ['{"a":[1.10,-2e+400,{"b":"x\\"{,}"}],"c":{},"d":[]}', jsonLines],
    ["[ ]", "[]"],
    ['"text"', '"text"'],
    ['{"a":1', '{"a":1'],
    ["[".repeat(300) + "]".repeat(300), "[".repeat(300) + "]".repeat(300)],
  ])("has a value on each line, and no number is changed: %s", (text, lines) => {
    expect(laidOut(text)).toBe(lines);
  });

  test("holds nobody up, however many values it has, nor fills a page with blanks", () => {
    const many = JSON.stringify({ items: Array.from({ length: 60_000 }, () => 1) });
    const deep = `${"[".repeat(199)}${"1,".repeat(90_000)}1${"]".repeat(199)}`;
    const { user: begun } = process.cpuUsage();
    expect(laidOut(many).split("\n")).toHaveLength(60_004);
    expect(laidOut(deep)).toBe(deep);
    expect((process.cpuUsage().user - begun) / 1_000).toBeLessThan(1_000);
  });
});

/** Every table of the program with its number of rows and a hash of them. */
async function everything(): Promise<Record<string, string>> {
  const { rows } = await database.db.raw<{ rows: { name: string }[] }>(
    `select format('%I.%I', schemaname, tablename) as name from pg_tables
     where schemaname in ('inbox', 'mirror', 'feed', 'alerts', 'receiver', 'reconcile', 'dispatch', 'reports')`,
  );
  const found: Record<string, string> = {};
  for (const { name } of rows) {
    const { rows: hashes } = await database.db.raw<{ rows: [{ hash: string }] }>(
      `select count(*) || ':' || coalesce(md5(string_agg(t::text, '|' order by t::text)), '') as hash from ${name} t`,
    );
    found[name] = hashes[0].hash;
  }
  return found;
}

describe("the preview of a replay", () => {
  test("shows rows, changes and alerts that would come, and leaves no trace", async () => {
    await applied("order.created", sampleOrder({ id: "ord_1", status: "pending", subscription_id: "sub_1" }));
    const seq = await storeEvent(
      database.db,
      "order.failed",
      sampleOrder({
        id: "ord_1",
        status: "failed",
        subscription_id: "sub_1",
        failure_code: "insufficient_funds",
        updated_at: at(5),
        attempt_count: 1,
      }),
    );
    const before = await everything();
    const { status, text } = await page(`/events/${seq}/preview`);
    expect(status).toBe(200);
    expect(text).toMatch(/It would become[^]*applied/);
    expect(text).toMatch(/failure_code[^]*insufficient_funds/);
    expect(text).toContain("order.failed");
    expect(text).toMatch(/Alerts that would be sent[^]*opened/);
    expect(await everything()).toEqual(before);
  });

  test("says that nothing would change where the state is known", async () => {
    const seq = await applied("order.created", sampleOrder({ id: "ord_1" }));
    const { text } = await page(`/events/${seq}/preview`);
    expect(text).toMatch(/It would become[^]*stale[^]*No row of the mirror would change/);
  });

  test("says why an event would fail again", async () => {
    const mend = await poisonOrder(database.db, "ord_1");
    try {
      const seq = await storeEvent(database.db, "order.created", sampleOrder({ id: "ord_1" }));
      const before = await everything();
      const { status, text } = await page(`/events/${seq}/preview`);
      expect([status, text.includes("jane@example.com")]).toEqual([200, false]);
      expect(text).toContain("It would fail");
      expect(await everything()).toEqual(before);
    } finally {
      await mend();
    }
  });

  test("says that somebody is writing, instead of waiting", async () => {
    const seq = await applied("order.created", sampleOrder({ id: "ord_1" }));
    const trx = await database.db.transaction();
    try {
      await trx("inbox.progress").where({ seq }).forUpdate();
      expect((await page(`/events/${seq}/preview`)).text).toContain("is writing this event");
    } finally {
      await trx.rollback();
    }
  });

  test("hides personal values from who may not see them", async () => {
    const seq = await storeEvent(database.db, "customer.created", sampleCustomer({ email: "jane.doe@example.com" }));
    expect((await page(`/events/${seq}/preview`)).text).not.toContain("jane.doe@example.com");
    expect((await page(`/events/${seq}/preview`, support)).text).toContain("jane.doe@example.com");
    expect(await audited("event.read")).toMatchObject({ after: { shown: ["personal fields"] } });
  });
});

describe("a replay", () => {
  test("of one event is done as it was decided on, and recorded", async () => {
    const seq = await applied("order.created", sampleOrder({ id: "ord_1" }));
    const version = fieldOf((await page(`/events/${seq}/preview`)).text, "decided-on");
    const answer = await post(`/events/${seq}/replay`, { "decided-on": version });
    expect([answer.status, answer.headers.get("location")]).toEqual([303, `/events/${seq}`]);
    expect((await progressOf(database.db, seq)).state).toBe("received");
    expect(await audited("event.replayed")).toMatchObject({ subject_id: String(seq) });
  });

  test("is refused where the event has changed since, and shows how it is now", async () => {
    const seq = await applied("order.created", sampleOrder({ id: "ord_1" }));
    const version = fieldOf((await page(`/events/${seq}/preview`)).text, "decided-on");
    await database.db("inbox.progress").where({ seq }).update({ state: "dead", attempts: 16 });
    for (const form of [{ "decided-on": version }, {}] as Record<string, string>[]) {
      const answer = await post(`/events/${seq}/replay`, form);
      expect(answer.status).toBe(409);
      expect(await answer.text()).toMatch(/dead[^]*16 attempts/);
    }
    expect((await progressOf(database.db, seq)).state).toBe("dead");
  });

  test("of an event without bytes is refused", async () => {
    const seq = await storeRow(database.db, { raw: null, state: "dead" });
    expect((await page(`/events/${seq}/preview`)).text).toContain("cannot be applied again");
    const missing = await post(`/events/${seq}/replay`, { "decided-on": "" });
    expect(missing.status).toBe(409);
  });

  test("of chosen events names each before it is done", async () => {
    const seqs = [await storeRow(database.db, { state: "dead" }), await storeRow(database.db, { state: "dead" })];
    const asked = await page(`/events/replay/confirm?seq=${seqs[0]}&seq=${seqs[1]}`);
    expect(listed(asked)).toEqual(seqs);
    const form = new URLSearchParams([
      ["decided-on", fieldOf(asked.text, "decided-on")],
      ...seqs.map((seq): [string, string] => ["seq", String(seq)]),
    ]);
    const answer = await sendForm("/events/replay", form);
    expect(answer.status).toBe(303);
    for (const seq of seqs) expect((await progressOf(database.db, seq)).state).toBe("received");
    expect(await audited("events.replayed")).toMatchObject({ after: { count: 2, seqs } });
    expect((await sendForm("/events/replay", form)).status).toBe(409);
  });

  test("of chosen events leaves out those whose bytes were removed", async () => {
    const whole = await storeRow(database.db, { state: "dead" });
    const empty = await storeRow(database.db, { state: "dead", raw: null });
    const asked = await page(`/events/replay/confirm?seq=${whole}&seq=${empty}`);
    expect(asked.text).toContain("1 chosen event has no stored payload");
    expect((await post("/events/replay", formOf(asked.text))).status).toBe(303);
    expect(await audited("event.replayed")).toMatchObject({ subject_id: String(whole) });
    const none = await page(`/events/replay/confirm?seq=${empty}`);
    expect(none.text).not.toContain('action="/events/replay"');
  });

  test("of nothing chosen is refused", async () => {
    expect((await page("/events/replay/confirm")).status).toBe(400);
    expect((await post("/events/replay", {})).status).toBe(400);
    expect((await page("/events/replay/confirm?seq=999999")).status).toBe(404);
  });

  test("of all that a filter finds is of exactly those that were counted, with one record", async () => {
    const { db } = database;
    const dead = [await storeRow(db, { state: "dead" }), await storeRow(db, { state: "dead" })];
    const other = await storeRow(db, { state: "applied" });
    const asked = await page("/events/replay/confirm?all=yes&state=dead");
    expect(asked.text).toMatch(/2 events[^]*state dead/);
    const form = formOf(asked.text);
    // One that came meanwhile is not meant.
    const newer = await storeRow(db, { state: "dead" });
    expect((await post("/events/replay", form)).status).toBe(303);
    for (const seq of dead) expect((await progressOf(db, seq)).state).toBe("received");
    expect((await progressOf(db, newer)).state).toBe("dead");
    expect((await progressOf(db, other)).state).toBe("applied");
    expect(await audited("events.replayed")).toMatchObject({
      after: { filter: { state: "dead" }, found: 2, count: 2 },
    });
  });

  test("of a filter by a double click is one, with one record", async () => {
    const { db } = database;
    const seqs = [await storeRow(db, { state: "dead" }), await storeRow(db, { state: "dead" })];
    const form = formOf((await page("/events/replay/confirm?all=yes&state=dead")).text);
    const lastId = async () => Number((await db("people.audit").max("id as id").first())?.id);
    const before = await lastId();
    const lock = await db.transaction();
    await lock("inbox.progress").where({ seq: seqs[0] }).forUpdate().select("seq");
    const clicks = [1, 2].map(() => post("/events/replay", form));
    // Both have found the events, and wait to put them back.
    await untilWaiting(db, 2);
    await lock.rollback();
    const statuses = (await Promise.all(clicks)).map(({ status }) => status);
    expect(statuses.toSorted((a, b) => a - b)).toEqual([303, 409]);
    expect(await db("people.audit").where("id", ">", before).pluck("action")).toEqual(["events.replayed"]);
  });

  test("of a filter is refused where it finds others by then, after ten minutes, and without a filter", async () => {
    const { db } = database;
    const seq = await storeRow(db, { state: "dead" });
    const form = formOf((await page("/events/replay/confirm?all=yes&state=dead")).text);
    await db("inbox.progress").where({ seq }).update({ state: "applied" });
    expect((await post("/events/replay", form)).status).toBe(409);
    await db("inbox.progress").where({ seq }).update({ state: "dead" });
    const now = dashboard.clock.now();
    dashboard.clock.set(new Date(now.getTime() + 11 * 60_000));
    expect((await post("/events/replay", form)).status).toBe(409);
    dashboard.clock.set(now);
    expect((await post("/events/replay", { all: "yes" })).status).toBe(400);
    expect((await page("/events/replay/confirm?all=yes")).status).toBe(400);
    expect((await progressOf(db, seq)).state).toBe("dead");
  });
});

const sendForm = (path: string, form: URLSearchParams) =>
  fetch(`${dashboard.url}${path}`, {
    method: "POST",
    redirect: "manual",
    headers: { cookie: operator, "sec-fetch-site": "same-origin" },
    body: form,
  });

const formOf = (text: string): Record<string, string> =>
  Object.fromEntries(
    [...text.matchAll(/type="hidden"\s+name="([^"]*)"\s+value="([^"]*)"/g)].map(([, name = "", value = ""]) => [
      name,
      value,
    ]),
  );

test("home says what waits, what is dead and why", async () => {
  await emptyInbox(database.db);
  await storeRow(database.db, { state: "dead", reason: "body: not JSON in UTF-8" });
  const { text } = await page("/", viewer);
  expect(text).toMatch(/1 event is dead: fix the cause, then replay\./);
  expect(text).toContain("Its body is not JSON in UTF-8.");
});
