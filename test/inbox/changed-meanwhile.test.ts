import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { replayEvents } from "../../src/core/inbox/retention.ts";
import { type TestDatabase, createTestDatabase } from "../support/database.ts";
import { untilWaiting } from "../support/until-waiting.ts";
import { openInbox } from "./inbox-stand.ts";
import { emptyInbox, storeRow, verifiedEvent } from "./stored-events.ts";

/**
 * PostgreSQL 18 evaluates a statement again for a row that it waited for and that has changed meanwhile. If the same
 * statement chooses partitions row by row, the server then reads freed memory, and everybody's connections are lost.
 */
let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  // As on a database with many events: one look-up for each row.
  for (const setting of ["enable_hashjoin", "enable_mergejoin", "enable_seqscan", "enable_sort"]) {
    await database.db.raw(
      `do $$ begin execute format('alter database %I set ${setting} = off', current_database()); end $$`,
    );
  }
  await database.db.destroy();
  database.db.initialize();
});
afterAll(() => database.destroy());
beforeEach(() => emptyInbox(database.db));

describe("while another transaction changes the rows", () => {
  test("repeats are counted", async () => {
    const stand = openInbox(database.url);
    const events = Array.from({ length: 8 }, (_, n) =>
      verifiedEvent({ eventId: `e${n}`, raw: Buffer.from(`{"n":${n}}`) }),
    );
    await Promise.all(events.map((event) => stand.appender.append(event)));
    const other = await database.db.transaction();
    await other("inbox.seen").update({ repeats: 5 });
    const repeated = Promise.all(events.map((event) => stand.appender.append(event)));
    await untilWaiting(database.db);
    await other.commit();
    expect((await repeated).every(({ duplicate }) => duplicate)).toBe(true);
    await stand.close();
    expect(await database.db("inbox.seen").pluck("repeats")).toEqual(events.map(() => 6));
  });

  test("events are set back for a replay", async () => {
    const seqs: number[] = [];
    for (let n = 0; n < 8; n++) seqs.push(await storeRow(database.db, { state: "applied" }));
    const other = await database.db.transaction();
    await other("inbox.progress").update({ attempts: 3 });
    const replayed = replayEvents(database.db, seqs);
    await untilWaiting(database.db);
    await other.commit();
    expect(await replayed).toEqual(seqs);
  });
});
