import type { Knex } from "knex";
import { eventually } from "../support/eventually.ts";

const openStates = ["received", "failed"];

/** Resolves when no event that is stored now is open any more; gives back how long that took. */
export async function storedAreSettled(db: Knex, withinMs = 60_000): Promise<number> {
  const startedMs = performance.now();
  const [newest] = await db("inbox.receipts").max<{ max: string }[]>("seq");
  const open = db("inbox.progress")
    .whereIn("state", openStates)
    .where("seq", "<=", newest?.max ?? 0);
  await eventually("every stored event is settled", async () => (await open.clone().first("seq")) === undefined, {
    withinMs,
    everyMs: 50,
  });
  return Math.round(performance.now() - startedMs);
}

/** Resolves when an event is settled whose arrival, or settling, lies after this call. */
export async function settledFromNow(
  db: Knex,
  options: {
    withinMs: number;
    /** Only events that also arrived after this call, and were settled so soon after their arrival. */
    afterArrivalMs?: number;
  },
): Promise<void> {
  const since = await eventually("the database answers", async () => {
    const { rows } = await db.raw<{ rows: { now: string }[] }>("select now()::text as now");
    return rows[0]?.now;
  });
  const settled = db("inbox.events").where("settled_at", ">", since);
  if (options.afterArrivalMs !== undefined) {
    void settled
      .where("received_at", ">", since)
      .whereRaw("settled_at - received_at < make_interval(secs => ?::float8 / 1000)", [options.afterArrivalMs]);
  }
  await eventually("events are settled", async () => (await settled.clone().first("seq")) !== undefined, {
    withinMs: options.withinMs,
    everyMs: 50,
  });
}

/** The longest time between an event's arrival and its end, by the server's clock. */
export async function longestWaitMs(db: Knex): Promise<number> {
  const { rows } = await db.raw<{ rows: { ms: number | null }[] }>(
    "select max(extract(epoch from settled_at - received_at) * 1000)::float8 as ms from inbox.events",
  );
  return Math.round(rows[0]?.ms ?? 0);
}
