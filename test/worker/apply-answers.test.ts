import { beforeEach, describe, expect, test } from "vitest";
import { requestRefetches, takeDueRefetches } from "../../src/core/inbox/refetch.ts";
import { snapshotFrom } from "../../src/core/mirror/snapshot.ts";
import { createAnswerGroup } from "../../src/core/worker/apply-answers.ts";
import { at, sampleOrder } from "../mirror/samples.ts";
import { statementsOf } from "../support/statements-of.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { applyDeps, emptyAll, poisonOrder } from "./worker-stand.ts";

const database = useTestDatabase();
beforeEach(() => emptyAll(database.db));

/** Takes refetches of these orders and hands over the answers to all of them at once. */
async function answerAtOnce(ids: readonly string[], notBefore: string | null = null) {
  const { db } = database;
  await requestRefetches(
    db,
    ids.map((id) => ({ resource: "order", id, reason: "thin", notBefore })),
  );
  const due = await takeDueRefetches(db, { limit: ids.length, leaseSeconds: 60 });
  const answer = createAnswerGroup(applyDeps(db));
  return await Promise.allSettled(
    due.map(async (refetch) => {
      const observedAt = "2025-03-01T12:01:00.000000Z";
      const object = sampleOrder({ id: refetch.id });
      const observations = [snapshotFrom("order", object, observedAt, "fetch")];
      const problem = await answer(refetch, {
        observations,
        unread: [],
        date: new Date(observedAt),
      });
      return [refetch.id, problem];
    }),
  );
}

const orders = () => database.db("mirror.orders").orderBy("id").pluck<string[]>("id");
const waiting = () => database.db("inbox.fetches").orderBy("id").pluck<string[]>("id");

describe("answers that arrive together", () => {
  const ids = ["order-1", "order-2", "order-3", "order-4", "order-5"];

  test("share a transaction: the first one has its own, those that arrive meanwhile the next", async () => {
    const statements = await statementsOf(database.db, () => answerAtOnce(ids));
    expect(statements.filter((sql) => /^begin/i.test(sql))).toHaveLength(2);
    expect(statements.filter((sql) => sql.includes("delete from inbox.fetches"))).toHaveLength(2);
    expect(await orders()).toEqual(ids);
    expect(await waiting()).toEqual([]);
  });

  test("are applied without the one that the database refuses, which alone is told of it", async () => {
    const heal = await poisonOrder(database.db, "order-3");
    try {
      const results = await answerAtOnce(ids);
      const refused = results.filter(({ status }) => status === "rejected");
      expect(refused).toMatchObject([{ reason: { code: "23514" } }]);
    } finally {
      await heal();
    }
    expect(await orders()).toEqual(["order-1", "order-2", "order-4", "order-5"]);
    expect(await waiting()).toEqual(["order-3"]);
  });

  test("leave the refetches open for which they are too early", async () => {
    const results = await answerAtOnce(["order-1", "order-2"], at(600));
    expect(results).toMatchObject([{ value: ["order-1", null] }, { value: ["order-2", null] }]);
    expect(await orders()).toEqual(["order-1", "order-2"]);
    expect(await waiting()).toEqual(["order-1", "order-2"]);
  });
});
