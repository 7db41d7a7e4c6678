import type { Knex } from "knex";
import type { ServiceClient } from "../../src/core/client/service-client.ts";
import type { Handler } from "../../src/parts/delivery/dispatch/define-handler.ts";
import { feedSource } from "../../src/parts/delivery/dispatch/feed-source.ts";
import { handlerWork } from "../../src/parts/delivery/handlers/run-handlers.ts";
import { registerRecipient } from "../../src/parts/delivery/dispatch/plan-runs.ts";
import {
  type DispatchOptions,
  type RunningDispatch,
  startDispatch,
} from "../../src/parts/delivery/dispatch/start-dispatch.ts";
import { applySnapshots } from "../../src/core/mirror/write/apply.ts";
import { wallClock } from "../../src/platform/clock.ts";
import { createLog } from "../../src/platform/log.ts";
import { createDatabase } from "../../src/platform/postgres/pool.ts";
import { seededRandom } from "../../src/platform/random.ts";
import { emptyMirror } from "../mirror/copies.ts";
import { at, sampleOrder, shown } from "../mirror/samples.ts";
import { eventually } from "../support/eventually.ts";
import { testPooling } from "../support/pooling.ts";
import { emptyTables } from "../support/empty-tables.ts";

const log = createLog({ level: "silent", name: "test" });

/** Calls of it are no part of these tests. */
const noClient = {} as ServiceClient;

/** Retries follow at once. */
const quick: DispatchOptions = {
  pollMs: 10,
  leaseMarginMs: 60_000,
  retry: { baseDelayMs: 1, maxDelayMs: 1 },
};

export interface TestDispatch extends RunningDispatch {
  handlersDb: Knex;
}

/** A process' part in running handlers, with pools of its own. */
export function openDispatch(
  url: string,
  handlers: readonly Handler[],
  options: Partial<DispatchOptions> = {},
): TestDispatch {
  const open = (poolMax: number) =>
    createDatabase({ url, pooling: testPooling(), poolMax, applicationName: "tallyhook test" });
  const [db, handlersDb] = [open(2), open(4)];
  const work = handlerWork({ db, handlersDb, client: noClient, log });
  const deps = { db, log, clock: wallClock, random: seededRandom(1) };
  const dispatch = startDispatch(deps, handlers, work, { ...quick, ...options });
  return {
    ...dispatch,
    handlersDb,
    async close() {
      await dispatch.close();
      await Promise.all([db.destroy(), handlersDb.destroy()]);
    },
  };
}

/** As a process does that begins to run it. */
export const registerHandler = (db: Knex, handler: { name: string; from: string }): Promise<void> =>
  registerRecipient(db, handler, feedSource({ name: handler.name, kinds: null, includeImport: false }));

export async function emptyDispatch(db: Knex): Promise<void> {
  await emptyMirror(db);
  // What happened before the first event would be history.
  await emptyTables(db, ["inbox.receipts", "inbox.progress", "inbox.seen"]);
  await emptyTables(db, ["dispatch.handlers", "dispatch.counts", "dispatch.runs", "feed.consumers"]);
}

/** A state of an order, with a total that tells it. Each makes one change or more. */
export const orderAt = (id: string, seconds: number, fields = {}) =>
  shown(
    "order",
    sampleOrder({
      id,
      updated_at: at(seconds),
      subtotal: seconds + 200,
      total: seconds,
      ...fields,
    }),
    at(seconds),
  );

/** Writes states to the mirror as an import or an event does. */
export const applyAs = (db: Knex, cause: string, ...states: ReturnType<typeof orderAt>[]) =>
  db.transaction((trx) =>
    applySnapshots(
      trx,
      states.map((state) => ({ ...state, cause })),
    ),
  );

export const untilRegistered = (db: Knex, name: string) =>
  eventually(`${name} is known`, async () => db("dispatch.handlers").where({ name }).first("name"));

/** Until all changes of the feed were handled, but for those that wait for a person. */
export const untilHandled = (db: Knex, { dead = 0, withinMs = 60_000 } = {}) =>
  eventually(
    "all changes are handled",
    async () => {
      const { rows } = await db.raw<{ rows: { open: number; behind: number }[] }>(
        `select (select count(*)::int from dispatch.runs) as open,
              (select count(*)::int from dispatch.handlers where position < feed.readable_until()) as behind`,
      );
      return rows[0]?.open === dead && rows[0].behind === 0;
    },
    { withinMs },
  );
