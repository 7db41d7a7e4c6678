import { expect, test } from "vitest";
import { trackAnswers, createReceiverCounters, storeAnswers } from "../../src/core/receiver/counters.ts";
import { useTestDatabase } from "../support/use-database.ts";

const database = useTestDatabase();

test("adds up what was answered since the last time, for all receivers together", async () => {
  const { db } = database;
  const counters = createReceiverCounters();
  const count = trackAnswers(counters);
  expect([...count()]).toEqual([]);
  counters.accepted = 3;
  counters.rejected.no_match = 2;
  await storeAnswers(db, count());
  await storeAnswers(db, count());
  counters.rejected.no_match = 5;
  await storeAnswers(db, count());
  const rows = await db("receiver.answers_by_minute")
    .groupBy("reason")
    .orderBy("reason")
    .select("reason", db.raw("sum(times)::int as times"));
  expect(rows).toEqual([
    { reason: "accepted", times: 3 },
    { reason: "no_match", times: 5 },
  ]);
});
