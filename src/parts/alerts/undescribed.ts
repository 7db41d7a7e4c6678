import type { Knex } from "knex";
import type { DeadEvent, FutureState, MaskedObject } from "../../core/mirror/listener.ts";
import { tallyhook } from "../../platform/command-line.ts";
import { inTransaction } from "../../platform/postgres/transactions.ts";
import { storable } from "../../platform/postgres/values.ts";
import { redacted } from "../../platform/redaction.ts";
import type { AlertContext, FoundBy } from "./alert-context.ts";
import { type AffectedIds, assessAffected, affectedOf } from "./assess.ts";
import { clear, raise } from "./raise-conditions.ts";
import { reportCardNumbers } from "./rules/card-numbers.ts";
import { reportDead, reportUnbelieved } from "./rules/events.ts";
import { headlineText, orderName, shortened } from "./rules/wording.ts";
import type { AlertSettings } from "./settings.ts";
import { newestAlerts, readWatermark, writeWatermark } from "./store.ts";
import type { End } from "./condition.ts";
import { type Condition, type Subject, noSubject } from "./timeline.ts";

/**
 * The failed part of an alert about one object or event: enough to try exactly that again. Ids, codes and names of
 * fields.
 */
export interface FailedCauses {
  foundBy: FoundBy;
  masked: readonly MaskedObject[];
  future: readonly FutureState[];
  affected: AffectedIds | null;
  dead: readonly DeadEvent[];
}

export interface UndescribedNews extends Omit<Undescribed, "failed"> {
  failed: FailedCauses | null;
}

/**
 * Opens an alert for each thing that could not be described. An alert that is already open keeps its earlier failures
 * as well. Needs a transaction; idempotent.
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

const asText = (failed: FailedCauses): string => JSON.stringify(failed);

/** The failures to describe again for an alert with these facts; none where an erasure has redacted it. */
function failedIn(facts: Readonly<Record<string, unknown>>): FailedCauses[] {
  const { failed } = facts;
  if (typeof failed !== "string" || failed === redacted) return [];
  return JSON.parse(failed) as FailedCauses[];
}

/** Something that needed an alert which could not be described. */
export interface Undescribed {
  /** A resource of the mirror, or another subject, such as `event`. */
  resource: string;
  id: string;
  /** The order number that people know. */
  orderNumber: string | null;
  /** Minor units as they were shown, never computed here. */
  money: string | null;
  /** The command that shows the object. */
  command: string;
  /** Contains no values. */
  reason: string;
  /** The failures to describe again, as JSON (`FailedCauses`); null where the source repeats its assessment itself. */
  failed: string | null;
}

/**
 * An alert that a named object needs attention. It uses as little data as possible, so that the object cannot make it
 * fail again.
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
      lead: money === null ? "1 alert could not be composed" : shortened(money),
      cause: money === null ? `about ${what}` : `an alert about ${what} could not be composed`,
    }),
    advice:
      `Only the alert failed, the data was applied. No one was notified of what happened: check the ${resource} ` +
      `now with "${command}". The worker's log has the error. Tallyhook tries again by itself; once it succeeds, ` +
      "this alert ends.",
    facts: [
      { label: "About", value: `${resource} ${id}` },
      ...(money === null ? [] : [{ label: "Amount as shown", value: money }]),
      { label: "Reason", value: reason },
    ],
    storedFacts: { resource, id, reason, ...(failed === null ? {} : { failed }) },
    subject: subjectOf(resource, id),
    family: "undescribed",
    at,
  };
}

export const undescribedKey = (resource: string, id: string): string => `undescribed:${resource}:${id}`;

/** An alert about anything else keeps the id in its facts alone. */
function subjectOf(resource: string, id: string): Subject {
  const key = `${resource}Id`;
  return Object.hasOwn(noSubject, key) ? { ...noSubject, [key]: id } : noSubject;
}

export const describedEnd: End = {
  title: "An alert that could not be composed has been composed",
  advice: `The event itself has an alert of its own: "${tallyhook("alerts list")}".`,
};

/** The most alerts of one step: those that still fail must not delay the others, nor the sweep. */
const maxPerStep = 20;

interface Row {
  id: string;
  key: string;
  facts: Record<string, unknown>;
}

/**
 * Retries alerts that could not be composed: exactly the failures stored with the alert that replaced them. It takes a
 * few at a time in rotation, each inside a savepoint. A retry may succeed because the cause has passed, the data has
 * changed, or another version is running. Success ends the replacement alert. Returns whether to continue immediately:
 * there is more, and all of these succeeded. Needs a transaction; idempotent.
 */
export async function describeAgain(trx: Knex.Transaction, alertContext: AlertContext): Promise<{ more: boolean }> {
  const { after } = (await readWatermark<{ after: string }>(trx, "undescribed")) ?? { after: "0" };
  const rows = await findUndescribed(trx, after);
  if (rows.length === 0 && after === "0") return { more: false };
  let failures = 0;
  for (const row of rows) {
    try {
      await inTransaction(trx, (savepoint) => describe(savepoint, alertContext, row));
    } catch {
      // Its alert stays. The worker's log gave the reason at the first failure.
      failures++;
    }
  }
  const isRound = rows.length < maxPerStep;
  await writeWatermark(trx, "undescribed", { after: isRound ? "0" : (rows.at(-1)?.id ?? "0") });
  return { more: !isRound && failures === 0 };
}

/** The alerts that have kept their failures. Failures of a run are left to the next run. */
const findUndescribed = (trx: Knex, after: string): Promise<Row[]> =>
  trx("alerts.alerts")
    .where("rule", "alert_undescribed")
    .whereNot("state", "resolved")
    .where("id", ">", after)
    .whereRaw("facts->'failed' is not null")
    .orderBy("id")
    .limit(maxPerStep)
    .select<Row[]>("id", "key", "facts");

async function describe(trx: Knex.Transaction, alertContext: AlertContext, row: Row): Promise<void> {
  for (const failed of failedIn(row.facts)) await tellAgain(trx, alertContext, failed);
  const now = (await newestAlerts(trx, [row.key])).get(row.key);
  // More failures were added. The next sweep describes them.
  if (now === undefined || now.facts["failed"] !== row.facts["failed"]) return;
  const ended = { key: row.key, end: describedEnd, at: alertContext.serviceClock.now() };
  await clear(trx, alertContext, [ended], "sweep");
}

async function tellAgain(
  trx: Knex.Transaction,
  alertContext: AlertContext,
  { foundBy, masked, future, affected, dead }: FailedCauses,
): Promise<void> {
  await reportCardNumbers(trx, alertContext, masked, foundBy);
  await reportUnbelieved(trx, alertContext, future, foundBy);
  if (affected !== null) await assessAffected(trx, alertContext, affectedOf(affected), foundBy);
  await reportDead(trx, alertContext, await stillDead(trx, dead));
}

/** The dead events that were not replayed since. */
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
