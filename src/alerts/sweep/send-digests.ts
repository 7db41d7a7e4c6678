import type { Knex } from "knex";
import { zoneOf } from "../desk.ts";
import type { AlertDesk } from "../desk.ts";
import type { AlertItem, AlertMessage } from "../message.ts";
import { moneyText } from "../../platform/money.ts";
import { queueMessages } from "../outbox-rows.ts";
import { lastTimeOfDay } from "../quiet-hours.ts";
import { quietEnd } from "../route.ts";

const hourMs = 3_600_000;
/** More than anybody reads. */
const maxItems = 50;

interface Row {
  channel: string;
  id: string;
  amount_minor: string | null;
  currency: string | null;
  facts: { title?: string; order_number?: string | null; failure_code?: string | null };
}

/**
 * Writes a digest for each channel that something waits for since before the last full hour, or the last time of day that
 * is set. What was resolved meanwhile is no longer among it. Needs a transaction; a digest is written once.
 */
export async function sendDigests(trx: Knex.Transaction, desk: AlertDesk): Promise<void> {
  const boundary = lastBoundary(desk);
  const { rows } = await trx.raw<{ rows: Row[] }>(
    `with due as (
       -- What was queued before the boundary and committed after its digest waits for the next one.
       delete from alerts.digest_items d
       where d.queued_at < :boundary and not exists (
         select from alerts.outbox o where o.channel = d.channel and o.alert_id is null and o.stage = :stage)
       returning d.channel, d.alert_id
     )
     select distinct due.channel, a.id, a.amount_minor, a.currency, a.facts
     from due join alerts.alerts a on a.id = due.alert_id where a.state = 'open' order by due.channel, a.id`,
    { boundary, stage: stageOf(boundary) },
  );
  const channels = [...new Set(rows.map(({ channel }) => channel))];
  await queueMessages(
    trx,
    channels.map((channel) => {
      const own = rows.filter((row) => row.channel === channel);
      const message = digestOf(channel, own, boundary);
      return { channel, alertId: null, message, notBefore: quietEnd(desk, message) };
    }),
  );
}

/** Until when what was gathered is told now. Pure. */
function lastBoundary(desk: AlertDesk): Date {
  const { softDeclines, dailyAt } = desk.settings.digests;
  const now = desk.clock.now();
  if (softDeclines !== "daily") return new Date(Math.floor(now.getTime() / hourMs) * hourMs);
  return lastTimeOfDay(dailyAt, zoneOf(desk), now);
}

const stageOf = (boundary: Date): string => `digest:${boundary.toISOString()}`;

function digestOf(channel: string, rows: readonly Row[], at: Date): AlertMessage {
  const stage = stageOf(at);
  const left = rows.length - maxItems;
  return {
    // The same for all: nothing ends a digest, and where alerts are incidents there is to be one of them at most.
    dedupKey: `digest/${channel}`,
    idempotencyKey: `${stage}/${channel}`,
    action: "trigger",
    severity: "info",
    rule: "decline",
    stage,
    title: `${rows.length} soft ${rows.length === 1 ? "decline" : "declines"} at the first attempt`,
    facts: [
      ...sumsOf(rows),
      ...(left > 0 ? [{ label: "Not shown here", value: String(left) }] : []),
    ],
    advice: "Nothing to do as a rule: a later try may succeed.",
    links: [],
    at: at.toISOString(),
    items: rows.slice(0, maxItems).map(itemOf),
  };
}

const itemOf = ({ id, amount_minor: amount, currency, facts }: Row): AlertItem => ({
  title: facts.title ?? `Alert ${id}`,
  facts: [
    { label: "Order", value: facts.order_number ?? "-" },
    { label: "Amount", value: moneyText(amount, currency) },
    { label: "Decline code", value: facts.failure_code ?? "none given" },
  ],
});

/** Currencies are never added. */
function sumsOf(rows: readonly Row[]): { label: string; value: string }[] {
  const sums = new Map<string, bigint>();
  for (const { amount_minor: amount, currency } of rows) {
    sums.set(currency ?? "", (sums.get(currency ?? "") ?? 0n) + BigInt(amount ?? 0));
  }
  return [...sums]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([currency, sum]) => ({ label: "In all", value: moneyText(sum, currency) }));
}
