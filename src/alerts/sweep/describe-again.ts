import type { Knex } from "knex";
import { inTransaction } from "../../platform/transaction.ts";
import { assessTouched } from "../assess.ts";
import { reportCardNumbers } from "../card-numbers.ts";
import { clear } from "../conditions.ts";
import type { AlertDesk } from "../desk.ts";
import { readMark, writeMark } from "../marks.ts";
import { reportDead } from "../report-dead.ts";
import type { DeadEvent } from "../report-dead.ts";
import { reportUnbelieved } from "../report-unbelieved.ts";
import { describedEnd } from "../rules/undescribed.ts";
import { newestAlerts } from "../stored-alerts.ts";
import { touchedOf } from "../touched.ts";
import { failedIn } from "../undescribed.ts";
import type { FailedNews } from "../undescribed.ts";

/** In one step: those that still fail must not hold up the others, nor the sweep. */
const atOnce = 20;

interface Row {
  id: string;
  key: string;
  facts: Record<string, unknown>;
}

/**
 * Tells again what could not be described: exactly what failed, as its alert has kept it. Some at a time and round and
 * round, each inside a savepoint: it may have been the moment, the data may have changed, or another version runs by now.
 * What succeeds ends the alert that stood for it. Gives back whether there is more of which all succeeds. Needs a
 * transaction; idempotent.
 */
export async function describeAgain(
  trx: Knex.Transaction,
  desk: AlertDesk,
): Promise<{ more: boolean }> {
  const { after } = (await readMark<{ after: string }>(trx, "undescribed")) ?? { after: "0" };
  const rows = await findUndescribed(trx, after);
  if (rows.length === 0 && after === "0") return { more: false };
  let failures = 0;
  for (const row of rows) {
    try {
      await inTransaction(trx, (savepoint) => describe(savepoint, desk, row));
    } catch {
      // Its alert stays, and the worker's log said why when it first failed.
      failures++;
    }
  }
  const isRound = rows.length < atOnce;
  await writeMark(trx, "undescribed", { after: isRound ? "0" : (rows.at(-1)?.id ?? "0") });
  return { more: !isRound && failures === 0 };
}

/** The alerts that have kept what failed. What a run could not describe the next run describes. */
const findUndescribed = (trx: Knex, after: string): Promise<Row[]> =>
  trx("alerts.alerts")
    .where("rule", "alert_undescribed")
    .whereNot("state", "resolved")
    .where("id", ">", after)
    .whereRaw("facts->'failed' is not null")
    .orderBy("id")
    .limit(atOnce)
    .select<Row[]>("id", "key", "facts");

async function describe(trx: Knex.Transaction, desk: AlertDesk, row: Row): Promise<void> {
  for (const failed of failedIn(row.facts)) await tellAgain(trx, desk, failed);
  const now = (await newestAlerts(trx, [row.key])).get(row.key);
  // More of it has failed meanwhile: that is told by the next sweep.
  if (now === undefined || now.facts["failed"] !== row.facts["failed"]) return;
  const ended = { key: row.key, end: describedEnd, at: desk.serviceClock.now() };
  await clear(trx, desk, [ended], "sweep");
}

async function tellAgain(
  trx: Knex.Transaction,
  desk: AlertDesk,
  { foundBy, masked, future, touched, dead }: FailedNews,
): Promise<void> {
  await reportCardNumbers(trx, desk, masked, foundBy);
  await reportUnbelieved(trx, desk, future, foundBy);
  if (touched !== null) await assessTouched(trx, desk, touchedOf(touched), foundBy);
  await reportDead(trx, desk, await stillDead(trx, dead));
}

/** Those that nobody has replayed since. */
async function stillDead(trx: Knex, dead: readonly DeadEvent[]): Promise<DeadEvent[]> {
  if (dead.length === 0) return [];
  const seqs = await trx("inbox.progress")
    .whereIn(
      "seq",
      dead.map(({ seq }) => seq),
    )
    .where("state", "dead")
    .pluck<string[]>("seq");
  return dead.filter(({ seq }) => seqs.includes(String(seq)));
}
