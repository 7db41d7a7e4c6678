import { once } from "node:events";
import { PassThrough } from "node:stream";
import { afterEach, beforeEach, test } from "vitest";
import { followEvents } from "../../../src/parts/browse/events/command.ts";
import type { CliContext } from "../../../src/app/cli/context.ts";
import type { EventSearch } from "../../../src/core/inbox/search-events.ts";
import { emptyInbox, storeRow } from "../../inbox/stored-events.ts";
import { eventually } from "../../support/eventually.ts";
import { useTestDatabase } from "../../support/use-database.ts";

const database = useTestDatabase();
const following: { stop(): Promise<void> }[] = [];
beforeEach(() => emptyInbox(database.db));
afterEach(async () => {
  for (const each of following.splice(0)) await each.stop();
});

/** Follows the inbox; `seqs` are those that were printed so far. */
async function follow(search: EventSearch = {}, limit = 20) {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const stop = new AbortController();
  let text = "";
  stdout.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
  const done = followEvents(
    { stdout, stderr } as unknown as Pick<CliContext, "stdout" | "stderr">,
    { db: database.db },
    { search, limit },
    { lineOf: ({ seq, state }) => `${seq} ${state}`, signal: stop.signal },
  );
  following.push({
    async stop() {
      stop.abort();
      await done;
    },
  });
  // What is there already is printed first, also where it is nothing.
  await once(stdout, "data");
  const lines = () => text.split("\n").filter((line) => line !== "");
  const printed = (expected: string[]) =>
    eventually(`it prints ${expected.join(", ")}`, () => lines().join() === expected.join(), {
      withinMs: 60_000,
    });
  return { lines, printed };
}

test("prints the newest events, oldest first, then each that comes", async () => {
  const old = [await storeRow(database.db), await storeRow(database.db), await storeRow(database.db)];
  const { printed } = await follow({}, 2);
  const next = await storeRow(database.db);
  await printed([...old.slice(1), next].map((seq) => `${seq} received`));
});

test("prints nothing of another type", async () => {
  await storeRow(database.db, { type: "order.created" });
  const there = await storeRow(database.db, { type: "order.paid" });
  const { printed } = await follow({ type: "order.paid" });
  await storeRow(database.db, { type: "order.created" });
  const paid = await storeRow(database.db, { type: "order.paid" });
  await printed([`${there} received`, `${paid} received`]);
});

test("prints an event once it has the state that was asked for", async () => {
  await storeRow(database.db);
  const first = await storeRow(database.db, { state: "dead" });
  const { printed } = await follow({ state: "dead" });
  const [dies, lives] = [await storeRow(database.db), await storeRow(database.db)];
  const last = await storeRow(database.db, { state: "dead" });
  await printed([`${first} dead`, `${last} dead`]);
  await database.db("inbox.progress").where({ seq: lives }).update({ state: "applied" });
  await database.db("inbox.progress").where({ seq: dies }).update({ state: "failed" });
  await database.db("inbox.progress").where({ seq: dies }).update({ state: "dead" });
  await printed([`${first} dead`, `${last} dead`, `${dies} dead`]);
});

test("prints an event once it is known to be about the object that was asked for", async () => {
  const first = await storeRow(database.db, { state: "applied", resourceId: "ord_1" });
  const { printed } = await follow({ resourceId: "ord_1" });
  const [mine, other] = [await storeRow(database.db), await storeRow(database.db)];
  await database.db("inbox.progress").where({ seq: other }).update({ state: "applied", resource_id: "ord_2" });
  await database.db("inbox.progress").where({ seq: mine }).update({ state: "applied", resource_id: "ord_1" });
  await printed([`${first} applied`, `${mine} applied`]);
});

test("prints an event that was there already once it has the state that was asked for", async () => {
  const waits = await storeRow(database.db);
  const first = await storeRow(database.db, { state: "dead" });
  const { printed } = await follow({ state: "dead" });
  await database.db("inbox.progress").where({ seq: waits }).update({ state: "dead" });
  await printed([`${first} dead`, `${waits} dead`]);
});

test("prints none of the older events beyond the limit that had the state already", async () => {
  await storeRow(database.db);
  const second = await storeRow(database.db);
  const { printed } = await follow({ state: "received" }, 1);
  const third = await storeRow(database.db);
  await printed([second, third].map((seq) => `${seq} received`));
});
