import type { Knex } from "knex";
import { createLog } from "../../src/platform/log.ts";
import { seededRandom } from "../../src/platform/random.ts";
import { defaultEnvelopePaths } from "../../src/core/contract/event-envelope.ts";
import type { ApplyDeps } from "../../src/core/worker/apply-batch.ts";
import { emptyAlerts, testAlertContext, toldTo } from "../alerts/test-alert-context.ts";
import { emptyInbox, storeRow } from "../inbox/stored-events.ts";
import { emptyMirror } from "../mirror/copies.ts";

export interface LoggedDeps extends ApplyDeps {
  /** Every line logged so far. */
  logged(): string;
}

export function applyDeps(db: Knex): LoggedDeps {
  const lines: string[] = [];
  const destination = { write: (line: string) => void lines.push(line) };
  return {
    db,
    log: createLog({ level: "debug", name: "test", destination }),
    random: seededRandom("worker"),
    places: defaultEnvelopePaths,
    ...toldTo(testAlertContext()),
    logged: () => lines.join(""),
  };
}

export async function emptyAll(db: Knex): Promise<void> {
  await emptyMirror(db);
  await emptyInbox(db);
  await emptyAlerts(db);
}

/** Stores an event with this type and object, and gives back its sequence number. */
export const storeEvent = (
  db: Knex,
  type: string,
  object: unknown,
  createdAt = "2025-03-01T12:00:00.000Z",
): Promise<number> => {
  const envelope = { id: `evt_${type}`, type, created_at: createdAt, data: { object } };
  return storeBody(db, JSON.stringify(envelope));
};

export const storeBody = (db: Knex, body: string | Buffer): Promise<number> => storeRow(db, { raw: Buffer.from(body) });

/** As if the pause after their last attempt were over. */
export const makeEventsDue = (db: Knex): Promise<number> =>
  db("inbox.progress")
    .where({ state: "failed" })
    .update({ next_attempt_at: db.raw("now()") });

/** Makes the database refuse one order, as a bug or a constraint that nobody thought of would. */
export const poisonOrder = (db: Knex, id: string): Promise<() => Promise<void>> =>
  whenWriting(
    db,
    id,
    "raise exception 'the order % of jane@example.com is poison', new.id using errcode = 'check_violation'",
  );

/** Makes the database refuse one order with an SQLSTATE. */
export const refuseOrder = (db: Knex, id: string, code: string): Promise<() => Promise<void>> =>
  whenWriting(db, id, `raise exception using errcode = '${code}'`);

/** Makes the database take its time for one order. */
export const slowOrder = (db: Knex, id: string, seconds: number): Promise<() => Promise<void>> =>
  whenWriting(db, id, `perform pg_sleep(${seconds})`);

async function whenWriting(db: Knex, id: string, action: string): Promise<() => Promise<void>> {
  await db.raw(`
    create function mirror.poison() returns trigger language plpgsql as $$
    begin
      if new.id = '${id}' then
        ${action};
      end if;
      return new;
    end $$;
    create trigger poison before insert or update on mirror.orders for each row execute function mirror.poison()`);
  return async () => {
    await db.raw("drop function if exists mirror.poison cascade");
  };
}
