import type { Knex } from "knex";
import { inTransaction } from "../platform/postgres/transactions.ts";
import { storable } from "../platform/postgres/values.ts";
import { redacted } from "../platform/redaction.ts";
import type { AlertContext, FoundBy } from "./alert-context.ts";
import { type AffectedIds, assessAffected, affectedOf } from "./assess.ts";
import { clear, raise } from "./raise-conditions.ts";
import { type MaskedObject, reportCardNumbers } from "./rules/card-numbers.ts";
import { type DeadEvent, type FutureState, reportDead, reportUnbelieved } from "./rules/events.ts";
import { headlineText, orderName, short } from "./rules/wording.ts";
import type { AlertSettings } from "./settings.ts";
import { newestAlerts, readWatermark, writeWatermark } from "./store.ts";
import { type Condition, type End, type Subject, noSubject } from "./timeline.ts";

/** What could not be told of one object or event: enough to tell exactly that again. Ids, codes and names of fields. */
export interface FailedNews {
  foundBy: FoundBy;
  masked: readonly MaskedObject[];
  future: readonly FutureState[];
  affected: AffectedIds | null;
  dead: readonly DeadEvent[];
}

export interface UndescribedNews extends Omit<Undescribed, "failed"> {
  failed: FailedNews | null;
}

/**
 * Opens an alert for each thing that could not be described; one that is open already keeps what failed before as well.
 * Needs a transaction; idempotent.
 */
export async function reportUndescribed(
  trx: Knex.Transaction,
  alertContext: AlertContext,
  undescribed: readonly UndescribedNews[],
  foundBy: FoundBy,
): Promise<void> {
  const at = alertContext.serviceClock.now();
  const { rules } = alertContext.settings;
  const keyOf = ({ resource, id }: UndescribedNews) => storable(undescribedKey(resource, id));
  const stored = await newestAlerts(trx, undescribed.map(keyOf));
  const conditions = undescribed.map((one) => {
    const alert = stored.get(keyOf(one));
    const before = alert === undefined || alert.state === "resolved" ? [] : failedIn(alert.facts);
    const all = new Set([...before, ...(one.failed === null ? [] : [one.failed])].map(asText));
    const failed = all.size === 0 ? null : `[${[...all].join(",")}]`;
    return undescribedCondition(rules, { ...one, failed }, at);
  });
  await raise(trx, alertContext, conditions, foundBy);
}

const asText = (failed: FailedNews): string => JSON.stringify(failed);

/** What is to be told again for an alert with these facts; nothing where an erasure has redacted it. Pure. */
function failedIn(facts: Readonly<Record<string, unknown>>): FailedNews[] {
  const { failed } = facts;
  if (typeof failed !== "string" || failed === redacted) return [];
  return JSON.parse(failed) as FailedNews[];
}

/** Something that alerts had to tell of and could not. */
export interface Undescribed {
  /** `order`, `transaction`, `subscription`, `customer`, or what it is about. */
  resource: string;
  id: string;
  /** As people know an order. */
  orderNumber: string | null;
  /** Minor units as they were shown: nothing is computed here. */
  money: string | null;
  /** Where to look. */
  command: string;
  /** Without values. */
  reason: string;
  /** What is to be told again, as JSON (`FailedNews`); null where what found it looks at it again by itself. */
  failed: string | null;
}

/**
 * Says that there is something to be told, and where to look. Made of as little as can be, so that what failed to be
 * described cannot fail again. Pure.
 */
export function undescribedCondition(
  rules: AlertSettings["rules"],
  { resource, id, orderNumber, money, command, reason, failed }: Undescribed,
  at: Date,
): Condition {
  const what = orderName(orderNumber) ?? resource;
  return {
    key: undescribedKey(resource, id),
    rule: "alert_undescribed",
    severity: rules.alert_undescribed.severity,
    title: headlineText({
      lead: money === null ? "1 alert could not be described" : short(money),
      cause: money === null ? `about ${what}` : `an alert about ${what} could not be described`,
    }),
    advice:
      `The data was applied, only the alert failed. Look at the ${resource} now, as nobody was told what happened: ` +
      `"${command}". The worker's log has the error. The alert is described again by itself, and this one ends then.`,
    facts: [
      { label: "About", value: `${resource} ${id}` },
      ...(money === null ? [] : [{ label: "Amount as it was shown", value: money }]),
      { label: "Reason", value: reason },
    ],
    kept: { resource, id, reason, ...(failed === null ? {} : { failed }) },
    subject: subjectOf(resource, id),
    family: "undescribed",
    at,
  };
}

export const undescribedKey = (resource: string, id: string): string =>
  `undescribed:${resource}:${id}`;

const subjectOf = (resource: string, id: string): Subject => ({
  ...noSubject,
  ...(resource === "order" ? { orderId: id } : {}),
  ...(resource === "transaction" ? { transactionId: id } : {}),
  ...(resource === "subscription" ? { subscriptionId: id } : {}),
  ...(resource === "customer" ? { customerId: id } : {}),
});

export const describedEnd: End = {
  title: "An alert that could not be described has been described",
  advice: 'What happened stands in an alert of its own: "npx tallyhook alerts list".',
};

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
  alertContext: AlertContext,
): Promise<{ more: boolean }> {
  const { after } = (await readWatermark<{ after: string }>(trx, "undescribed")) ?? { after: "0" };
  const rows = await findUndescribed(trx, after);
  if (rows.length === 0 && after === "0") return { more: false };
  let failures = 0;
  for (const row of rows) {
    try {
      await inTransaction(trx, (savepoint) => describe(savepoint, alertContext, row));
    } catch {
      // Its alert stays, and the worker's log said why when it first failed.
      failures++;
    }
  }
  const isRound = rows.length < atOnce;
  await writeWatermark(trx, "undescribed", { after: isRound ? "0" : (rows.at(-1)?.id ?? "0") });
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

async function describe(
  trx: Knex.Transaction,
  alertContext: AlertContext,
  row: Row,
): Promise<void> {
  for (const failed of failedIn(row.facts)) await tellAgain(trx, alertContext, failed);
  const now = (await newestAlerts(trx, [row.key])).get(row.key);
  // More of it has failed meanwhile: that is told by the next sweep.
  if (now === undefined || now.facts["failed"] !== row.facts["failed"]) return;
  const ended = { key: row.key, end: describedEnd, at: alertContext.serviceClock.now() };
  await clear(trx, alertContext, [ended], "sweep");
}

async function tellAgain(
  trx: Knex.Transaction,
  alertContext: AlertContext,
  { foundBy, masked, future, affected, dead }: FailedNews,
): Promise<void> {
  await reportCardNumbers(trx, alertContext, masked, foundBy);
  await reportUnbelieved(trx, alertContext, future, foundBy);
  if (affected !== null) await assessAffected(trx, alertContext, affectedOf(affected), foundBy);
  await reportDead(trx, alertContext, await stillDead(trx, dead));
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
