import { afterEach, beforeEach, expect, test } from "vitest";
import { resumeHandler } from "../../src/parts/delivery/dispatch/manage-handlers.ts";
import type { RunningDispatch } from "../../src/parts/delivery/dispatch/start-dispatch.ts";
import {
  type ChannelServer,
  type ReceivedPost,
  answering,
  startChannelServer,
} from "../alerts/channels/channel-server.ts";
import { applyAs, emptyDispatch, orderAt, untilHandled, untilRegistered } from "../dispatch/dispatch-stand.ts";
import { eventually } from "../support/eventually.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { type ForwardOptions, openForward, runsOf, secret, settingsFor, verified } from "./forward-stand.ts";

const database = useTestDatabase();
const opened: RunningDispatch[] = [];
let subscriber: ChannelServer;
beforeEach(async () => {
  await emptyDispatch(database.db);
  subscriber = await startChannelServer();
});
afterEach(async () => {
  await subscriber.close();
  await Promise.all(opened.splice(0).map((forward) => forward.close()));
});

async function forward(
  given: Parameters<typeof settingsFor>[1] = {},
  {
    url = `${subscriber.url}/in?k=1`,
    privateHosts = ["127.0.0.1"],
    ...options
  }: ForwardOptions & {
    url?: string;
    privateHosts?: string[];
  } = {},
): Promise<RunningDispatch> {
  const running = openForward(
    database.url,
    settingsFor(url, { kinds: ["order.created", "order.updated"], ...given }, privateHosts),
    options,
  );
  opened.push(running);
  await untilRegistered(database.db, "forward:crm");
  return running;
}

interface SentChange {
  type: string;
  timestamp: string;
  data: { change: Record<string, unknown>; object?: Record<string, unknown> };
}
const sent = (post: ReceivedPost) => verified(post) as SentChange;
const runs = () => runsOf(database.db);
/** The error of the first run, once it has failed. */
const failure = () => eventually("it failed", async () => (await runs())[0]?.error as string | null | undefined);

test("each change arrives once, signed as Standard Webhooks, in the order of its object, with the object as it left it", async () => {
  const { db } = database;
  await forward();
  for (const second of [1, 2, 3]) {
    await applyAs(db, "event:1", orderAt("order-1", second), orderAt("order-2", second));
  }
  await untilHandled(db);
  const bodies = subscriber.posts.map(sent);
  for (const id of ["order-1", "order-2"]) {
    const own = bodies.filter(({ data }) => data.change["id"] === id);
    expect(own.map(({ type }) => type)).toEqual(["order.created", "order.updated", "order.updated"]);
    expect(own.map(({ data }) => data.object?.["total"])).toEqual([1, 2, 3]);
  }
  const stored = await db("feed.changes").whereNot({ kind: "order.paid" }).orderBy("seq").select("seq", "recorded_at");
  expect(bodies.map(({ data }) => data.change["seq"]).toSorted((a, b) => Number(a) - Number(b))).toEqual(
    stored.map(({ seq }) => Number(seq)),
  );
  const [first] = subscriber.posts;
  expect(first?.path).toBe("/in?k=1");
  expect(first?.headers["content-type"]).toBe("application/json");
  expect(bodies[0]?.timestamp).toBe(stored[0].recorded_at.toISOString());
  expect(new Set(subscriber.posts.map(({ headers }) => headers["webhook-id"])).size).toBe(6);
});

test("a subscriber with another secret refuses what it gets, and one that is being given a new secret takes both", async () => {
  const { db } = database;
  const [next, former] = [`whsec_${btoa("a".repeat(32))}`, secret];
  await forward({}, { secrets: `${next},${former}` });
  await applyAs(db, "event:1", orderAt("order-1", 1));
  await untilHandled(db);
  const [post] = subscriber.posts as [ReceivedPost];
  expect(verified(post, former)).toEqual(verified(post, next));
  expect(() => verified(post, `whsec_${btoa("b".repeat(32))}`)).toThrow(/No matching signature/);
  expect(() => verified({ ...post, body: `${post.body} ` })).toThrow(/No matching signature/);
});

test("only the kinds that a destination wants are sent, and without the object where it wants none", async () => {
  const { db } = database;
  await forward({ kinds: ["order.updated"], withObject: false });
  await applyAs(db, "event:1", orderAt("order-1", 1));
  await applyAs(db, "event:1", orderAt("order-1", 2));
  await applyAs(db, "import", orderAt("order-1", 3));
  await untilHandled(db);
  expect(subscriber.posts.map(sent)).toEqual([
    {
      type: "order.updated",
      timestamp: expect.any(String),
      data: { change: expect.objectContaining({ id: "order-1", cause: "event:1" }) },
    },
  ]);
});

test("a repeat has the same id and another signature time, and the later changes of its object wait for it", async () => {
  const { db } = database;
  let isBroken = true;
  subscriber.answerWith((response) => response.writeHead(isBroken ? 500 : 204).end());
  await forward();
  await applyAs(db, "event:1", orderAt("order-1", 1));
  await applyAs(db, "event:1", orderAt("order-1", 2));
  await subscriber.reached(3);
  isBroken = false;
  await untilHandled(db);
  const ids = subscriber.posts.map(({ headers }) => headers["webhook-id"]);
  const seqs = subscriber.posts.map((post) => sent(post).data.change["seq"] as number);
  expect(new Set(ids).size).toBe(2);
  expect(seqs).toEqual(seqs.toSorted((a, b) => a - b));
  expect(new Set(seqs.slice(0, 3)).size).toBe(1);
});

test("a name that resolves to a private address is refused, and nothing is sent there", async () => {
  const { db } = database;
  await forward(
    {},
    {
      url: "https://crm.example.com/in",
      privateHosts: [],
      retryMs: 600_000,
      resolve: async () => [{ address: "10.0.0.5", family: 4 }],
    },
  );
  await applyAs(db, "event:1", orderAt("order-1", 1));
  expect(await failure()).toBe("crm.example.com is at a private address: add it to privateHosts if that is meant");
});

test("a subscriber that answers 410 is paused at once, until a person resumes it", async () => {
  const { db } = database;
  subscriber.answerWith(answering(410));
  await forward({ concurrency: 1 });
  await applyAs(db, "event:1", orderAt("order-1", 1), orderAt("order-2", 1));
  const paused = await eventually("it is paused", () =>
    db("dispatch.handlers").whereNotNull("paused_at").first("paused_by", "pause_reason", "probe_at"),
  );
  expect(paused).toEqual({
    paused_by: "subscriber",
    pause_reason: "It wants nothing more: 127.0.0.1 answered 410 Gone.",
    probe_at: null,
  });
  const count = subscriber.posts.length;
  subscriber.answerWith(answering(200));
  expect(count).toBeLessThanOrEqual(2);
  await resumeHandler(db, "forward:crm");
  await untilHandled(db);
  expect(new Set(subscriber.posts.slice(count).map((post) => sent(post).data.change["id"]))).toEqual(
    new Set(["order-1", "order-2"]),
  );
});

test("a subscriber that answers 429 gets nothing at all until its Retry-After is over", async () => {
  const { db } = database;
  const calls: number[] = [];
  subscriber.answerWith((response) => {
    calls.push(performance.now());
    if (calls.length > 1) return void response.end();
    response.writeHead(429, { "retry-after": "1" }).end();
  });
  await forward({ concurrency: 1 });
  await applyAs(db, "event:1", orderAt("order-1", 1), orderAt("order-2", 1));
  await untilHandled(db);
  const [first = 0, second = 0] = calls;
  expect(second - first).toBeGreaterThan(990);
  expect(calls).toHaveLength(3);
});

test("a redirect is not followed: it is a failure that says so", async () => {
  const { db } = database;
  subscriber.answerWith(answering(308, "", { location: `${subscriber.url}/elsewhere` }));
  await forward({}, { retryMs: 600_000 });
  await applyAs(db, "event:1", orderAt("order-1", 1));
  expect(await failure()).toBe("127.0.0.1 answered 308; redirects are not followed");
  expect(subscriber.posts.map(({ path }) => path)).toEqual(["/in?k=1"]);
});

test("a subscriber that hangs fails at the time-out, and other objects go on meanwhile", async () => {
  const { db } = database;
  subscriber.answerWith((response, post) => {
    if (sent(post).data.change["id"] !== "order-hangs") response.end();
  });
  await forward({ timeoutSeconds: 1 }, { retryMs: 600_000 });
  await applyAs(db, "event:1", orderAt("order-hangs", 1), orderAt("order-1", 1));
  await eventually("the other is done", async () => (await runs()).length === 1);
  expect(await runs()).toMatchObject([{ id: "order-hangs", error: null }]);
  expect(await failure()).toBe("127.0.0.1 could not be reached (no answer in time)");
});

test("an answer that never ends is not read to its end, and nothing of it is kept", async () => {
  const { db } = database;
  subscriber.answerWith((response) => {
    response.writeHead(500);
    const more = (): void => void (response.write("x".repeat(65_536)) && setImmediate(more));
    response.on("drain", more);
    response.on("error", () => {});
    more();
  });
  await forward({ timeoutSeconds: 20 }, { retryMs: 600_000 });
  await applyAs(db, "event:1", orderAt("order-1", 1));
  expect(await failure()).toBe("127.0.0.1 answered 500");
});
