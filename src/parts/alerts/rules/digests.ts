import type { Knex } from "knex";
import { tallyhook } from "../../../platform/command-line.ts";
import { moneyText } from "../../../platform/money.ts";
import { sqlArray } from "../../../platform/postgres/values.ts";
import { counted } from "../../../platform/readable-text.ts";
import { type AlertContext, type RuleWording, wordingOf, zoneOf } from "../alert-context.ts";
import { listParts } from "../channels/channel-kinds.ts";
import { customerFacts } from "../compose-message.ts";
import type { AlertItem, AlertMessage, AlertSeverity } from "../message.ts";
import { lastTimeOfDay, quietEnd } from "../outbox/announce.ts";
import { type OutboxRow, queueMessages } from "../outbox/outbox.ts";
import { causeOf } from "../../../core/mirror/dunning/decline-groups.ts";
import { type DeclineEnding, endHeadline, endingIn, lastRetryHeadline, lostHeadline } from "./declines.ts";
import { type Part, byMoney, headlineText, listTitle, orderName, sumTexts, sumsInTitle } from "./wording.ts";

const hourMs = 3_600_000;

interface Row extends Pick<DigestState, "rule" | "state" | "stages" | "isNewSinceTaken"> {
  channel: string;
  id: string;
  customer_id: string | null;
  amount_minor: string | null;
  currency: string | null;
  facts: {
    order_number?: string | null;
    failure_code?: string | null;
    attempts?: number;
    next_retry_at?: string | null;
    is_final?: boolean;
    healed?: number;
  };
}

/**
 * Writes a digest for each channel with items that have waited since before the last full hour, or since before the
 * daily time that is set. A digest shows the present state, in several messages where one is too short. It waits while
 * no item needs action. Needs a transaction. Each digest is written once.
 */
export async function sendDigests(trx: Knex.Transaction, alertContext: AlertContext): Promise<void> {
  const boundary = lastBoundary(alertContext);
  const stage = `digest:${boundary.toISOString()}`;
  const rows = await waitingItems(trx, { boundary, stage });
  if (rows.length === 0) return;
  const customers = await customerFacts(trx, [...new Set(rows.flatMap(({ customer_id: id }) => id ?? []))]);
  for (const channel of new Set(rows.map((row) => row.channel))) {
    const entries = rows.flatMap((row): DigestEntry[] => {
      if (row.channel !== channel) return [];
      const section = digestSection({ ...row, isFinal: row.facts.is_final === true });
      const person = customers.get(row.customer_id ?? "")?.person ?? null;
      return section === null ? [] : [entryOf(row, section, person)];
    });
    if (entries.length > 0 && !asksSomething(entries)) continue;
    await markTold(
      trx,
      rows.filter((row) => row.channel === channel),
    );
    if (entries.length === 0) continue;
    await queueMessages(trx, digestRows(alertContext, { channel, entries, stage, boundary }));
  }
}

/**
 * The digest of a channel, in as many messages as show all that it names. Items that only wait are counted in the
 * first.
 */
function digestRows(alertContext: AlertContext, { channel, entries, stage: first, boundary }: DigestList): OutboxRow[] {
  const wording = wordingOf(alertContext);
  const kind = alertContext.settings.channels[channel]?.kind;
  const unnamed = entries.filter((entry) => !isNamed(entry));
  const parts = listParts(kind, namedEntries(entries), (entry) => digestItem(entry, wording));
  return (parts.length === 0 ? [[]] : parts).map((named, n): OutboxRow => {
    const stage = n === 0 ? first : `${first}:${n + 1}`;
    const which = { part: n + 1, parts: Math.max(1, parts.length) };
    const message: AlertMessage = {
      // The same for all digests: a digest has no end, so channels that keep incidents should have at most one.
      dedupKey: `digest/${channel}`,
      idempotencyKey: `${stage}/${channel}`,
      action: "trigger",
      rule: "digest",
      stage,
      links: [],
      at: boundary.toISOString(),
      ...digestWords(n === 0 ? [...named, ...unnamed] : named, wording, which),
    };
    return { channel, alertId: null, message, notBefore: quietEnd(alertContext, message) };
  });
}

interface DigestList {
  channel: string;
  entries: readonly DigestEntry[];
  /** The outbox stage of the first message. */
  stage: string;
  boundary: Date;
}

/** Items that wait for a digest: one row for each alert and channel, with all waiting transitions. One statement. */
async function waitingItems(trx: Knex, { boundary, stage }: { boundary: Date; stage: string }): Promise<Row[]> {
  const { rows } = await trx.raw<{ rows: Row[] }>(
    `select d.channel, a.id, a.rule, a.state, a.customer_id, a.amount_minor, a.currency, a.facts,
            array_agg(d.stage order by d.stage) as stages,
            -- Both are times of the database: the machine that acknowledged may have another clock.
            coalesce(bool_or(d.queued_at > taken.at), false) as "isNewSinceTaken"
     from alerts.digest_items d join alerts.alerts a on a.id = d.alert_id
       left join lateral (select max(h.recorded_at) as at from alerts.history h
                          where h.alert_id = a.id and h.change = 'acknowledged') taken on true
     -- What was queued before the boundary and committed after its digest waits for the next one.
     where d.told_at is null and d.queued_at < :boundary and not exists (
       select from alerts.outbox o where o.channel = d.channel and o.alert_id is null and o.stage = :stage)
     group by d.channel, a.id order by d.channel, a.id`,
    { boundary, stage },
  );
  return rows;
}

/** Marks exactly these rows. Rows committed since they were read are in no digest yet. One statement. */
async function markTold(trx: Knex, rows: readonly Row[]): Promise<void> {
  const items = rows.flatMap(({ channel, id, stages }) => stages.map((stage) => ({ channel, id, stage })));
  await trx.raw(
    `update alerts.digest_items d set told_at = now()
     from unnest(?::text[], ?::bigint[], ?::text[]) as told(channel, alert_id, stage)
     where d.channel = told.channel and d.alert_id = told.alert_id and d.stage = told.stage`,
    [
      sqlArray(items.map(({ channel }) => channel)),
      sqlArray(items.map(({ id }) => id)),
      sqlArray(items.map(({ stage }) => stage)),
    ],
  );
}

const entryOf = (
  { id, amount_minor: amount, currency, facts, stages }: Row,
  section: DigestEntry["section"],
  person: string | null,
): DigestEntry => ({
  alertId: Number(id),
  section,
  amountMinor: amount === null ? null : BigInt(amount),
  currency,
  person,
  orderNumber: facts.order_number ?? null,
  failureCode: facts.failure_code ?? null,
  attempts: facts.attempts ?? 1,
  nextRetryAt: facts.next_retry_at == null ? null : new Date(facts.next_retry_at),
  ending: endingIn(stages),
  healed: facts.healed ?? 0,
});

/** Items gathered before this time are sent now. */
export function lastBoundary(alertContext: Pick<AlertContext, "settings" | "timeZone" | "clock">): Date {
  const { when, dailyAt } = alertContext.settings.digests;
  const now = alertContext.clock.now();
  if (when !== "daily") return new Date(Math.floor(now.getTime() / hourMs) * hourMs);
  return lastTimeOfDay(dailyAt, zoneOf(alertContext), now);
}

/** An alert as the daily list shows it. */
export interface DigestEntry {
  alertId: number;
  /** The action for people. `healed` and `waiting` need none and are only counted. */
  section: DigestSection;
  amountMinor: bigint | null;
  currency: string | null;
  person: string | null;
  orderNumber: string | null;
  failureCode: string | null;
  attempts: number;
  nextRetryAt: Date | null;
  ending: DeclineEnding | null;
  /** Differences from the service that a run found and healed. */
  healed: number;
}

export const digestSections = ["lost", "last-try", "order", "over", "healed", "waiting"] as const;
export type DigestSection = (typeof digestSections)[number];

export interface DigestState {
  rule: string;
  state: "open" | "acknowledged" | "resolved";
  isFinal: boolean;
  /** The transitions that wait for this list. */
  stages: readonly string[];
  /** Whether one of them happened after the alert was acknowledged. */
  isNewSinceTaken: boolean;
}

/**
 * The action that the list asks for an alert, by its present state. Null: none any more, because the alert was
 * acknowledged, or ended before it was sent. An acknowledged alert with a newer transition is listed again, since the
 * person who acknowledged it does not know of that one.
 */
function digestSection({ rule, state, isFinal, stages, isNewSinceTaken }: DigestState): DigestSection | null {
  if (state === "resolved") {
    return endingIn(stages) === null ? null : "over";
  }
  if (state === "acknowledged" && !isNewSinceTaken) return null;
  if (rule === "reconcile_drift") return "healed";
  if (isFinal) return "lost";
  if (stages.some((name) => name.startsWith("last-retry:"))) return "last-try";
  return rule === "decline" ? "order" : "waiting";
}

/** Whether a list is worth a message: an action is needed, or there is news. */
const asksSomething = (entries: readonly DigestEntry[]): boolean =>
  entries.some(({ section }) => section !== "waiting");

/**
 * The named entries of the list in order: the most pressing request first, and within a currency the largest amount
 * first.
 */
export const namedEntries = (entries: readonly DigestEntry[]): DigestEntry[] =>
  digestSections.flatMap((section) =>
    entries
      .filter((entry) => entry.section === section && isNamed(entry))
      .toSorted((a, b) => byMoney(a, b) || a.alertId - b.alertId),
  );

/**
 * The daily list as title, facts, advice and items. `entries` are those of this message, in the order of
 * `namedEntries`, and include the waiting ones that it counts; the sums cover only these.
 */
export function digestWords(
  entries: readonly DigestEntry[],
  wording: RuleWording,
  which: Part = { part: 1, parts: 1 },
): Pick<AlertMessage, "severity" | "title" | "facts" | "advice" | "items"> {
  const of = (section: DigestSection) => entries.filter((entry) => entry.section === section);
  const parts = digestSections.flatMap((section) => {
    const own = of(section);
    return own.length === 0 || section === "waiting" || section === "healed"
      ? []
      : [{ section, says: titles[section](own.length), sums: sumTexts(own) }];
  });
  const waiting = of("waiting");
  const healed = of("healed").reduce((sum, entry) => sum + entry.healed, 0);
  const isAsking = parts.length > 0;
  return {
    severity: severityOf(parts, wording),
    title: listTitle(
      isAsking
        ? parts.map(({ says, sums }, n) => (n === 0 ? `${says} (${sumsInTitle(sums)})` : says)).join(", ")
        : `${counted(healed, "difference")} from the service found and healed`,
      which,
    ),
    facts: [
      ...parts.map(({ section, sums }) => ({ label: labels[section], value: sums.join(", ") })),
      ...(healed === 0 ? [] : [{ label: labels.healed, value: String(healed) }]),
      ...(waiting.length === 0
        ? []
        : [
            {
              label: labels.waiting,
              value:
                `${counted(waiting.length, "declined renewal")} (${sumTexts(waiting).join(", ")}): the service ` +
                "retries",
            },
          ]),
    ],
    advice: isAsking ? parts.map(({ section }) => advice[section]).join(" ") : healedAdvice,
    items: entries.filter(isNamed).map((entry) => digestItem(entry, wording)),
  };
}

/** Whether the list has a line for it; the others are only counted. */
export const isNamed = ({ section }: DigestEntry): boolean => section !== "waiting" && section !== "healed";

type Asking = Exclude<DigestSection, "waiting" | "healed">;

const titles: Readonly<Record<Asking, (n: number) => string>> = {
  lost: (n) => `${counted(n, "renewal")} LOST`,
  "last-try": (n) => `${n} before the last retry`,
  order: (n) => `${counted(n, "order")} not paid`,
  over: (n) => `${n} ended`,
};

const labels: Readonly<Record<DigestSection, string>> = {
  lost: "LOST, collect or cancel",
  "last-try": "Before the last retry, write to them",
  order: "Orders not paid",
  over: "Ended, stop reminding",
  healed: "Differences found and healed",
  waiting: "Nothing to do yet",
};

const advice: Readonly<Record<Asking, string>> = {
  lost:
    "LOST: ask the customer to pay another way, or cancel the subscription (all that are open: " +
    `"${tallyhook("alerts list --rule dunning_final")}").`,
  "last-try":
    "Before the last retry: write to the customer or call today, or the renewal is lost " +
    `("${tallyhook("alerts list --rule dunning_renewal")}").`,
  order:
    "Orders not paid: the service does not retry them. Write to the customers who did not come back " +
    `("${tallyhook("alerts list --rule decline")}").`,
  over: "Ended: stop reminding these customers.",
};

const healedAdvice =
  "The mirror is correct again. If many webhooks were missed, check the endpoint, the receiver and the network " +
  `("${tallyhook("report exceptions")}" names the cause of each).`;

function severityOf(parts: readonly { section: DigestSection }[], { rules }: RuleWording): AlertSeverity {
  const has = (section: DigestSection) => parts.some((part) => part.section === section);
  if (has("lost")) return rules.dunning_final.severity;
  if (has("last-try")) return rules.dunning_last_retry.severity;
  return has("order") ? rules.decline.severity : "info";
}

/** An alert as the list shows it. */
function digestItem(entry: DigestEntry, { shortTime }: RuleWording): AlertItem {
  const { alertId, person, orderNumber, failureCode } = entry;
  return {
    alertId,
    title: headlineText(headlineOf(entry, shortTime), person),
    facts: [
      { label: "Order", value: orderNumber ?? "-" },
      { label: "Last decline", value: causeOf(failureCode) },
      ...(entry.section === "over" ? [] : [{ label: "Acknowledge", value: tallyhook(`alerts ack ${alertId}`) }]),
    ],
  };
}

function headlineOf(entry: DigestEntry, shortTime: RuleWording["shortTime"]) {
  const amount = moneyText(entry.amountMinor, entry.currency);
  switch (entry.section) {
    case "lost":
      return lostHeadline(amount, entry.attempts);
    case "last-try":
      return lastRetryHeadline(amount, entry.nextRetryAt === null ? "soon" : shortTime(entry.nextRetryAt));
    case "over":
      return endHeadline(amount, { ending: entry.ending ?? "canceled", tries: entry.attempts });
    case "order":
    case "healed":
    case "waiting":
      return {
        lead: [amount, orderName(entry.orderNumber) ?? "order"].join(" "),
        cause: causeOf(entry.failureCode),
      };
  }
}
