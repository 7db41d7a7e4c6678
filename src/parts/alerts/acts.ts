import type { Knex } from "knex";
import { type Act, ActRefused, type ActSubject, actOn, outdated, recordOf, requireRow } from "../../app/people/act.ts";
import { flag, oneOf, optional, reference, text, wholeNumber, withDefault } from "../../app/people/fields.ts";
import type { Clock } from "../../platform/clock.ts";
import { paragraph, shortLine } from "../../platform/free-text.ts";
import { inTransaction } from "../../platform/postgres/transactions.ts";
import { acknowledgeAlert } from "./escalation.ts";
import { type AlertSeverity, alertSeverities } from "./message.ts";
import { resendFailed } from "./outbox/outbox.ts";
import { type AlertSettings, type RuleName, ruleNames, unknownChannel } from "./settings.ts";
import {
  type SilenceRow,
  beginSilence,
  endSilence,
  findSilence,
  listSilences,
  lockSilence,
  lockSilences,
  mostSilentHours,
  silencesSince,
} from "./silences.ts";
import { type AlertDelivery, type AlertRow, findAlert, findAlertByKey, lockAlert } from "./store.ts";

/** An alert, by its number or its key. */
export const alertSubject: ActSubject<AlertRow> = {
  kind: "alert",
  async lock(trx, given) {
    const id = await alertNamed(trx, given);
    return id === null ? null : lockAlert(trx, id);
  },
  idOf: ({ id }) => id,
  version: ({ state, severity, stage }) => `${state} ${severity} ${stage}`,
};

/** The number of the alert with this number or key, in its one spelling; null where it cannot be one. */
export const alertNamed = async (db: Knex, given: string): Promise<number | null> =>
  /^[1-9]\d{0,14}$/.test(given) ? Number(given) : findAlertByKey(db, given);

const noAlert = (given: string): ActRefused => new ActRefused("unknown", `There is no alert "${given}".`);

/** It no longer escalates, and its channels are notified of the person who works on it. */
export const acknowledging = actOn(alertSubject, "alert", {
  name: "alert.acknowledged",
  permission: "alert:write",
  fields: { alert: reference, note: optional(text(paragraph)) },
  async change(trx, { id, state }, { actor, input }, { clock }: { clock: Clock }) {
    if (state === "resolved") {
      const message = `Alert ${id} is resolved, so there is nothing to acknowledge.`;
      throw new ActRefused("hindered", message);
    }
    const said = { id: Number(id), by: actor.name, note: input.note };
    const outcome = await acknowledgeAlert({ db: trx, clock }, said);
    const record = { before: { state }, after: { state: "acknowledged" } };
    return { done: { id, outcome }, record: outcome === "acknowledged" ? record : null };
  },
});

/** Messages that were given up are sent again: of an alert, one of them, or all to a channel. */
export const resending: Act<
  { db: Knex; settings: () => AlertSettings },
  { alert: string | null; message: string | null; channel: string | null; hours: number },
  { messages: Record<string, number> }
> = {
  name: "alert.resent",
  permission: "alert:write",
  fields: {
    alert: optional(reference),
    message: optional(reference),
    channel: optional(reference),
    hours: withDefault(wholeNumber(1, 8_784), 72),
  },
  async run({ db, settings }, call) {
    const { alert, message, channel, hours: withinHours } = call.input;
    if (alert === null && channel === null) {
      throw new ActRefused("invalid", "Name an alert, or a channel.");
    }
    const known = channel === null ? [] : Object.keys(settings().channels);
    if (channel !== null && !known.includes(channel)) {
      throw new ActRefused("unknown", unknownChannel(channel, known));
    }
    return inTransaction(db, async (trx) => {
      const chosen = alert === null ? null : await requireFailed(trx, alert, message, call);
      const messages = await resendFailed(trx, {
        withinHours,
        ...(chosen === null ? {} : { alertId: chosen.alertId }),
        ...(message === null ? {} : { messageId: Number(message) }),
        ...(channel === null ? {} : { channel }),
      });
      if (Object.keys(messages).length > 0) {
        await recordOf(resending, call)(trx, {
          ...(chosen === null ? {} : { subject: { kind: "alert", id: String(chosen.alertId) } }),
          after: { messages, ...(message === null ? {} : { message }) },
        });
      }
      return { messages };
    });
  },
};

/** The version for sending messages again. Empty where none was abandoned. */
export const versionOfFailed = (messages: readonly Pick<AlertDelivery, "id" | "state" | "attempts">[]): string =>
  messages.flatMap(({ id, state, attempts }) => (state === "failed" ? `${id}:${attempts}` : [])).join();

/** The alert whose messages are sent again, where they are as they were shown. */
async function requireFailed(
  trx: Knex.Transaction,
  alert: string,
  message: string | null,
  { decidedOn }: { decidedOn: string | null },
): Promise<{ alertId: number }> {
  const id = await alertNamed(trx, alert);
  const found = id === null ? null : await findAlert(trx, id);
  if (found === null) throw noAlert(alert);
  const chosen = message === null ? found.messages : found.messages.filter((each) => each.id === message);
  if (message !== null && chosen.length === 0) {
    const gone = `Alert ${found.id} has no message ${message}. Old ones are removed.`;
    throw new ActRefused("unknown", gone);
  }
  const version = versionOfFailed(chosen);
  if (decidedOn !== null && (version === "" || decidedOn !== version)) {
    throw outdated(`The list of undelivered messages of alert ${found.id}`, found);
  }
  return { alertId: Number(found.id) };
}

interface SilenceInput {
  /** This alert, also when it comes back. */
  alert: string | null;
  /** All alerts of this rule. */
  rule: RuleName | null;
  /** All alerts of the rule of `alert`. */
  wholeRule: boolean;
  /** More severe messages are sent. Null: the severity of the alert, or the rule's. */
  upTo: AlertSeverity | null;
  hours: number;
  reason: string | null;
}

/** Messages of an alert or of a rule wait for a time. The reason is not in the record: people write in it. */
export const silencing: Act<{ db: Knex; settings: () => AlertSettings }, SilenceInput, SilenceRow> = {
  name: "silence.begun",
  permission: "alert:write",
  fields: {
    alert: optional(reference),
    rule: optional(oneOf(ruleNames)),
    wholeRule: flag,
    upTo: optional(oneOf(alertSeverities)),
    hours: withDefault(wholeNumber(1, mostSilentHours), 8),
    reason: optional(text(shortLine)),
  },
  async run({ db, settings }, call) {
    const { alert, rule, wholeRule, hours, reason } = call.input;
    if ((alert === null) === (rule === null)) {
      throw new ActRefused("invalid", "Name an alert, or a rule.");
    }
    return inTransaction(db, async (trx) => {
      const found = alert === null ? null : await alertToSilence(trx, alert, call.decidedOn);
      if (found === null) await assertSilences(trx, call.decidedOn);
      const ofRule = rule ?? (wholeRule ? (found?.rule ?? null) : null);
      const of = ofRule === null ? { key: found?.key ?? "" } : { rule: ofRule };
      const severity = () => found?.severity ?? settings().rules[rule as RuleName].severity;
      const upTo = call.input.upTo ?? severity();
      const id = await beginSilence(trx, { of, upTo, hours, by: call.actor.name, reason });
      await recordOf(silencing, call)(trx, {
        subject: { kind: "silence", id: String(id) },
        after: { ...of, upTo, hours },
      });
      return (await findSilence(trx, id)) as SilenceRow;
    });
  },
};

/** The version for a new silence of a rule: the silences in force. */
export const versionOfSilences = (silences: readonly Pick<SilenceRow, "id" | "is_in_force">[]): string =>
  silences
    .flatMap(({ id, is_in_force: isInForce }) => (isInForce ? id : []))
    .toSorted()
    .join();

/** The version for silencing an alert: a form that is sent twice silences once. */
export const versionToSilence = (alert: AlertRow, silences: readonly SilenceRow[]): string =>
  `${alertSubject.version(alert)} ${versionOfSilences(silences)}`;

/** The alert and its silences, locked so that the second of two concurrent silences sees the first. */
async function alertToSilence(trx: Knex.Transaction, given: string, decidedOn: string | null): Promise<AlertRow> {
  const found = await requireRow(trx, alertSubject, given, null);
  const silences = await silencesSince(trx, found, found.opened_at);
  if (decidedOn !== null && decidedOn !== versionToSilence(found, silences)) {
    throw outdated(`Alert ${found.id}`, found);
  }
  return found;
}

/** The number that a page lists. */
export const mostSilencesListed = 100;

async function assertSilences(trx: Knex.Transaction, decidedOn: string | null): Promise<void> {
  if (decidedOn === null) return;
  await lockSilences(trx);
  const silences = await listSilences(trx, { all: true, limit: mostSilencesListed });
  if (decidedOn !== versionOfSilences(silences)) throw outdated("The list of silences");
}

export const silenceSubject: ActSubject<SilenceRow> = {
  kind: "silence",
  lock: (trx, given) => (/^\d{1,15}$/.test(given) ? lockSilence(trx, Number(given)) : Promise.resolve(null)),
  idOf: ({ id }) => id,
  version: ({ ends_at: endsAt, ended_at: endedAt }) => `${endsAt.toISOString()} ${endedAt?.toISOString() ?? ""}`,
};

/** The held-back messages are sent. */
export const unsilencing = actOn(silenceSubject, "silence", {
  name: "silence.ended",
  permission: "alert:write",
  fields: { silence: reference },
  async change(trx, { id }, { actor }) {
    const outcome = await endSilence(trx, { id: Number(id), by: actor.name });
    return { done: { id, outcome }, record: outcome === "ended" ? {} : null };
  },
});
