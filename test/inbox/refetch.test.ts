import { beforeEach, describe, expect, test } from "vitest";
import {
  type RefetchRequest,
  postponeRefetch,
  completeRefetches,
  takeDueRefetches,
  requestRefetches,
} from "../../src/core/inbox/refetch.ts";
import { emptyInbox } from "./stored-events.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { statementsOf } from "../support/statements-of.ts";

const database = useTestDatabase();
beforeEach(() => emptyInbox(database.db));

const wanted = (given: Partial<RefetchRequest> = {}): RefetchRequest => ({
  resource: "order",
  id: "ord_1",
  reason: "thin",
  notBefore: null,
  ...given,
});
const want = (...fetches: RefetchRequest[]) => requestRefetches(database.db, fetches);
const take = ({ limit = 10, leaseSeconds = 60 } = {}) => takeDueRefetches(database.db, { limit, leaseSeconds });
const takeOne = async () => {
  const [fetch] = await take();
  if (fetch === undefined) throw new Error("no read is due");
  return fetch;
};
const passSeconds = (seconds: number) =>
  database.db.raw("update inbox.fetches set due_at = due_at - make_interval(secs => ?)", [seconds]);
const stored = () => database.db("inbox.fetches").orderBy(["resource", "id"]);

const earlier = "2026-03-01T12:00:00.000000Z";
const later = "2026-03-01T12:00:02.000000Z";

describe("ordering reads", () => {
  test("one object is read once, however often it is asked for in one go", async () => {
    await want(
      wanted({ notBefore: earlier }),
      wanted(),
      wanted({ notBefore: later, reason: "tie" }),
      wanted({ id: "ord_2" }),
      wanted({ resource: "customer" }),
    );
    const fetches = await take();
    expect(fetches.map(({ resource, id }) => `${resource} ${id}`).sort()).toEqual([
      "customer ord_1",
      "order ord_1",
      "order ord_2",
    ]);
    const tie = fetches.find(({ resource, id }) => resource === "order" && id === "ord_1");
    expect(tie).toMatchObject({ reason: "tie", notBefore: new Date(later), generation: 1 });
  });

  test("a further order raises the generation, starts the attempts again and never asks for less", async () => {
    await want(wanted({ notBefore: later }));
    const first = await takeOne();
    await want(wanted({ notBefore: earlier, reason: "dispute" }));
    const second = await takeOne();
    expect(first).toMatchObject({ generation: 1, attempts: 1 });
    expect(second).toMatchObject({
      generation: 2,
      attempts: 1,
      reason: "dispute",
      notBefore: new Date(later),
    });
  });

  test("useless answers are counted only where that is said, and again from a further order on", async () => {
    await want(wanted());
    const error = "no object";
    await postponeRefetch(database.db, await takeOne(), { delayMs: 0, error, uselessAnswers: 3 });
    await postponeRefetch(database.db, await takeOne(), { delayMs: 0, error: "503" });
    expect(await takeOne()).toMatchObject({ attempts: 3, uselessAnswers: 3 });
    await want(wanted());
    expect(await takeOne()).toMatchObject({ attempts: 1, uselessAnswers: 0 });
  });

  test("no order is no statement", async () => {
    expect(await statementsOf(database.db, () => want())).toEqual([]);
  });

  test("an order goes away with its transaction", async () => {
    const trx = await database.db.transaction();
    await requestRefetches(trx, [wanted()]);
    await trx.rollback();
    expect(await stored()).toEqual([]);
  });

  test("two transactions that order the same objects in another sequence do not deadlock", async () => {
    const ids = Array.from({ length: 50 }, (_, n) => wanted({ id: `ord_${n}` }));
    await Promise.all(
      Array.from({ length: 8 }, (_, n) =>
        database.db.transaction((trx) => requestRefetches(trx, n % 2 === 0 ? ids : ids.toReversed())),
      ),
    );
    expect(new Set((await stored()).map(({ generation }) => generation))).toEqual(new Set([8]));
  });
});

describe("taking reads", () => {
  test("hides what it took for the lease, and shows it again when the taker did not come back", async () => {
    await want(wanted());
    expect(await take()).toHaveLength(1);
    expect(await take()).toEqual([]);
    await passSeconds(58);
    expect(await take()).toEqual([]);
    await passSeconds(3);
    expect(await take()).toMatchObject([{ attempts: 2, generation: 1 }]);
  });

  test("takes what has been due for longest first, and no more than it may", async () => {
    for (const n of [1, 2, 3]) {
      await want(wanted({ id: `ord_${n}` }));
      await passSeconds(5);
    }
    expect((await take({ limit: 2 })).map(({ id }) => id).sort()).toEqual(["ord_1", "ord_2"]);
    expect((await take({ limit: 2 })).map(({ id }) => id)).toEqual(["ord_3"]);
  });

  test("two takers at once never get the same read", async () => {
    await want(...Array.from({ length: 40 }, (_, n) => wanted({ id: `ord_${n}` })));
    const taken = (await Promise.all([1, 2, 3, 4].map(() => take({ limit: 15 })))).flat();
    expect(new Set(taken.map(({ id }) => id)).size).toBe(taken.length);
    taken.push(...(await take({ limit: 40 })));
    expect(taken).toHaveLength(40);
  });
});

describe("ending reads", () => {
  test("a read that was applied is gone", async () => {
    await want(wanted(), wanted({ id: "ord_2" }));
    const fetches = await take();
    await completeRefetches(
      database.db,
      fetches.filter(({ id }) => id === "ord_1"),
    );
    expect((await stored()).map(({ id }) => id)).toEqual(["ord_2"]);
  });

  test("a read that was ordered again while it was under way is due again at once", async () => {
    await want(wanted());
    const underWay = await takeOne();
    await want(wanted({ notBefore: later, reason: "tie" }));
    await completeRefetches(database.db, [underWay]);
    expect(await takeOne()).toMatchObject({ generation: 2, reason: "tie", attempts: 1 });
  });

  test("of several that were applied together, only those that were not ordered again are gone", async () => {
    await want(wanted(), wanted({ id: "ord_2" }), wanted({ resource: "customer" }));
    const underWay = await take();
    await want(wanted({ id: "ord_2" }));
    await completeRefetches(database.db, underWay.toReversed());
    expect(await stored()).toMatchObject([{ resource: "order", id: "ord_2" }]);
    expect(await takeOne()).toMatchObject({ id: "ord_2", generation: 2 });
  });

  test("a read that was taken again under its new order is settled by that one alone", async () => {
    await want(wanted());
    const first = await takeOne();
    await want(wanted());
    const second = await takeOne();
    await completeRefetches(database.db, [first]);
    expect(await stored()).toHaveLength(1);
    await completeRefetches(database.db, [second]);
    expect(await stored()).toEqual([]);
    await completeRefetches(database.db, [second]);
  });

  test("a read that is put off comes back at its time, with what is known of it", async () => {
    await want(wanted());
    const fetch = await takeOne();
    const missingSince = new Date("2026-03-01T12:00:00.000Z");
    await postponeRefetch(database.db, fetch, { delayMs: 30_000, error: "429", missingSince });
    expect(await stored()).toMatchObject([{ last_error: "429", missing_since: missingSince }]);
    await passSeconds(28);
    expect(await take()).toEqual([]);
    await passSeconds(3);
    const again = await takeOne();
    expect(again).toMatchObject({ attempts: 2, missingSince });
    await postponeRefetch(database.db, again, { delayMs: 0, error: "500" });
    expect(await stored()).toMatchObject([{ last_error: "500", missing_since: null }]);
  });

  test("putting a read off does not delay one that was ordered again meanwhile", async () => {
    await want(wanted());
    const underWay = await takeOne();
    await want(wanted({ reason: "tie" }));
    await postponeRefetch(database.db, underWay, { delayMs: 600_000, error: "503" });
    expect(await takeOne()).toMatchObject({ generation: 2, reason: "tie" });
  });
});
