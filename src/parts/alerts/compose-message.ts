import { hash } from "node:crypto";
import type { Knex } from "knex";
import { tallyhook } from "../../platform/command-line.ts";
import { moneyText } from "../../platform/money.ts";
import { counted } from "../../platform/readable-text.ts";
import { sqlArray } from "../../platform/postgres/values.ts";
import { hiddenEmail, maskedEmail } from "../../platform/redaction.ts";
import type { AlertFact, AlertItem, AlertMessage } from "./message.ts";
import { headlineText } from "./rules/wording.ts";
import type { LinkTemplates } from "./settings.ts";
import type { Transition, Subject } from "./timeline.ts";
import { type AlertContext, wordingOf } from "./alert-context.ts";

/** A customer's facts in a message. */
export interface CustomerInMessage {
  /** The masked address, for the title; null where it is unknown. */
  person: string | null;
  facts: readonly AlertFact[];
}

export interface MessageParts {
  key: string;
  occurrence: number;
  channel: string;
  stage: Pick<Transition, "name" | "change" | "at" | "rule" | "severity" | "title" | "headline" | "advice" | "facts">;
  /** The alert's number, by which people acknowledge it. */
  alertId?: number;
  /** When a condition was noticed, as text. Rules that know the customer state the time of the event themselves. */
  noticed?: string;
  /** The alert's customer. */
  customer?: CustomerInMessage | null;
  links?: AlertMessage["links"];
  items?: readonly AlertItem[];
}

/** The content of one message to one channel. */
export function composeMessage({
  key,
  occurrence,
  channel,
  stage,
  alertId,
  noticed,
  customer,
  links,
  items,
}: MessageParts): AlertMessage {
  const dedupKey = dedupKeyOf(key, occurrence);
  const person = stage.headline === undefined ? null : (customer?.person ?? null);
  const isOver = stage.change === "resolved";
  const isCondition = stage.headline === undefined;
  const ownFacts = [
    ...(noticed === undefined || !isCondition ? [] : [{ label: "Noticed", value: noticed }]),
    ...(alertId === undefined ? [] : [{ label: "Acknowledge", value: tallyhook(`alerts ack ${alertId}`) }]),
  ];
  return {
    dedupKey,
    idempotencyKey: `${dedupKey}/${stage.name}/${channel}`,
    action: stage.change === "resolved" ? "resolve" : "trigger",
    severity: stage.severity,
    rule: stage.rule,
    stage: stage.name,
    title: stage.headline === undefined ? stage.title : headlineText(stage.headline, person),
    facts: [...stage.facts, ...(customer?.facts ?? []), ...(isOver ? [] : ownFacts)],
    advice: stage.advice,
    links: links ?? [],
    at: stage.at.toISOString(),
    ...(items === undefined ? {} : { items }),
  };
}

/**
 * When an alert was noticed, for its message. An alert about a failed one has the time in UTC: the cause may be the
 * time zone itself.
 */
export const noticedText = (alertContext: AlertContext, { rule }: Pick<Transition, "rule">, at: Date): string =>
  rule === "alert_undescribed" ? at.toISOString() : wordingOf(alertContext).localTime(at);

/** Channels limit the length of keys, and event ids may be long. */
const maxKeyLength = 160;

/** The name of an alert, shared by all its messages. */
const dedupKeyOf = (key: string, occurrence: number): string =>
  `${key.length <= maxKeyLength ? key : `${key.slice(0, 80)}:${hash("sha256", key, "hex").slice(0, 32)}`}#${occurrence}`;

/** The link to an alert's page on the dashboard; none without a public address. */
export const pageLink = (
  { dashboardUrl }: Pick<AlertContext, "dashboardUrl">,
  alertId: number,
): AlertMessage["links"] =>
  dashboardUrl === null ? [] : [{ label: "Alert", url: `${dashboardUrl}/alerts/${alertId}` }];

/** Links to the pages of an alert's subject. An id fills one part of the path, with any content. */
export function linksOf(templates: LinkTemplates, subject: Subject): AlertMessage["links"] {
  const ids = [
    ["Order", templates.order, subject.orderId],
    ["Subscription", templates.subscription, subject.subscriptionId],
    ["Customer", templates.customer, subject.customerId],
    ["Transaction", templates.transaction, subject.transactionId],
  ] as const;
  return ids.flatMap(([label, url, id]) => {
    if (url === undefined || id === null || /^\.*$/.test(id)) return [];
    return [{ label, url: url.replaceAll("{id}", () => encodeURIComponent(id.toWellFormed())) }];
  });
}

/** Both may be null, since the mirror may lack a currency or an amount. */
interface Sum {
  currency: string | null;
  amount: string | null;
  /** Number of unknown amounts, which it leaves out. */
  unknown: number;
}

/**
 * A customer is not named once an erasure has begun. The erasure locks this table and so waits for its readers
 * (mirror/privacy/erased-people.ts): the erasure sees every message written.
 */
const isNotErased = "not exists (select from mirror.erasures e where e.customer_id = c.id)";

interface Row {
  id: string;
  email: string | null;
  past_due: Sum[] | null;
  paid: Sum[] | null;
}

/**
 * Facts about customers for messages, by id: the masked address, the total past due, and the lifetime payments (less
 * refunds and lost chargebacks). Currencies are never added. One statement.
 */
export async function customerFacts(db: Knex, ids: readonly string[]): Promise<Map<string, CustomerInMessage>> {
  if (ids.length === 0) return new Map();
  const { rows } = await db.raw<{ rows: Row[] }>(
    `select asked.id, c.email,
       (select jsonb_agg(jsonb_build_object('currency', d.currency, 'amount', d.amount::text, 'unknown', d.unknown)
                        order by d.currency)
        from (select o.currency, sum(o.total) as amount, count(*) - count(o.total) as unknown
              from mirror.orders o join mirror.subscriptions s on s.id = o.subscription_id
              where o.customer_id = asked.id and o.status = 'failed' and s.status <> 'canceled'
                -- Not one that another order of its cycle has replaced.
                and (o.subscription_cycle > 1 is not true or o.id in (
                  select r.order_id from reports.renewal_cycles(array[o.subscription_id]) r))
              group by o.currency) d) as past_due,
       (select jsonb_agg(jsonb_build_object('currency', p.currency, 'amount', p.amount::text, 'unknown', p.unknown)
                        order by p.currency)
        from (select t.currency, sum(case t.type when 'refund' then -abs(t.amount) else t.amount end) as amount,
                     count(*) - count(t.amount) as unknown
              from mirror.transactions t
              where t.order_id = any(array(select o.id from mirror.orders o where o.customer_id = asked.id))
                and t.status = 'succeeded' and t.type in ('sale', 'refund')
              group by t.currency) p) as paid
     from unnest(?::text[]) as asked(id)
     left join mirror.customers c on c.id = asked.id and ${isNotErased}`,
    [sqlArray(ids)],
  );
  return new Map(rows.map((row) => [row.id, wordsOf(row)]));
}

function sumText({ currency, amount, unknown }: Sum): string {
  const sum = moneyText(amount, currency);
  return amount === null || unknown === 0 ? sum : `${sum} and ${counted(unknown, "unknown amount")}`;
}

function wordsOf({ id, email, past_due: pastDue, paid }: Row): CustomerInMessage {
  const sums = (list: Row["paid"]) => (list ?? []).map(sumText).join(", ") || "nothing";
  const masked = email === null ? null : maskedEmail(email);
  return {
    person: masked === hiddenEmail ? null : masked,
    facts: [
      { label: "Customer", value: masked === null ? id : `${masked} (${id})` },
      { label: "Past due in total", value: sums(pastDue) },
      { label: "Paid in total", value: sums(paid) },
    ],
  };
}

/** Customers' names in lists, by id: `a…@e….com (cus_1)`. One statement. */
export async function customerNames(db: Knex, ids: readonly string[]): Promise<Map<string, string>> {
  const { rows } = await db.raw<{ rows: { id: string; email: string | null }[] }>(
    `select c.id, c.email from mirror.customers c where c.id = any(?::text[]) and ${isNotErased}`,
    [sqlArray(ids)],
  );
  return new Map(rows.map(({ id, email }) => [id, email === null ? id : `${maskedEmail(email)} (${id})`]));
}
