import type { Knex } from "knex";
import { wordingOf, zoneOf } from "../desk.ts";
import type { AlertDesk } from "../desk.ts";
import { customerFacts } from "../facts/customers.ts";
import type { AlertMessage } from "../message.ts";
import { queueMessages } from "../outbox-rows.ts";
import { lastTimeOfDay } from "../quiet-hours.ts";
import { quietEnd } from "../route.ts";
import { asksSomething, digestSection, digestWords } from "../rules/digest.ts";
import type { DigestEntry, DigestState } from "../rules/digest.ts";

const hourMs = 3_600_000;

interface Row extends Pick<DigestState, "rule" | "state" | "stages"> {
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
  };
}

/**
 * Writes a list for each channel that something waits for since before the last full hour, or the last time of day that
 * is set: by how things stand now. While nothing on it asks for anything it waits. Needs a transaction; a list is
 * written once.
 */
export async function sendDigests(trx: Knex.Transaction, desk: AlertDesk): Promise<void> {
  const boundary = lastBoundary(desk);
  const stage = `digest:${boundary.toISOString()}`;
  const rows = await waitingItems(trx, { boundary, stage });
  if (rows.length === 0) return;
  const customers = await customerFacts(trx, [
    ...new Set(rows.flatMap(({ customer_id: id }) => id ?? [])),
  ]);
  for (const channel of new Set(rows.map((row) => row.channel))) {
    const entries = rows.flatMap((row): DigestEntry[] => {
      if (row.channel !== channel) return [];
      const section = digestSection({ ...row, isFinal: row.facts.is_final === true });
      const person = customers.get(row.customer_id ?? "")?.person ?? null;
      return section === null ? [] : [entryOf(row, section, person)];
    });
    if (entries.length > 0 && !asksSomething(entries)) continue;
    await markTold(trx, channel, boundary);
    if (entries.length === 0) continue;
    const message: AlertMessage = {
      // The same for all: nothing ends a digest, and where alerts are incidents there is to be one of them at most.
      dedupKey: `digest/${channel}`,
      idempotencyKey: `${stage}/${channel}`,
      action: "trigger",
      rule: "digest",
      stage,
      links: [],
      at: boundary.toISOString(),
      ...digestWords(entries, wordingOf(desk)),
    };
    const notBefore = quietEnd(desk, message);
    await queueMessages(trx, [{ channel, alertId: null, message, notBefore }]);
  }
}

/** What waits for a list, an alert and channel a row, with all its stages that do. One statement. */
async function waitingItems(
  trx: Knex,
  { boundary, stage }: { boundary: Date; stage: string },
): Promise<Row[]> {
  const { rows } = await trx.raw<{ rows: Row[] }>(
    `select d.channel, a.id, a.rule, a.state, a.customer_id, a.amount_minor, a.currency, a.facts,
            array_agg(d.stage order by d.stage) as stages
     from alerts.digest_items d join alerts.alerts a on a.id = d.alert_id
     -- What was queued before the boundary and committed after its digest waits for the next one.
     where d.told_at is null and d.queued_at < :boundary and not exists (
       select from alerts.outbox o where o.channel = d.channel and o.alert_id is null and o.stage = :stage)
     group by d.channel, a.id order by d.channel, a.id`,
    { boundary, stage },
  );
  return rows;
}

const markTold = (trx: Knex, channel: string, boundary: Date): Promise<number> =>
  trx("alerts.digest_items")
    .where({ channel })
    .whereNull("told_at")
    .where("queued_at", "<", boundary)
    .update({ told_at: trx.fn.now() });

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
  isPaid: stages.includes("recovered"),
});

/** Until when what was gathered is told now. Pure. */
function lastBoundary(desk: AlertDesk): Date {
  const { when, dailyAt } = desk.settings.digests;
  const now = desk.clock.now();
  if (when !== "daily") return new Date(Math.floor(now.getTime() / hourMs) * hourMs);
  return lastTimeOfDay(dailyAt, zoneOf(desk), now);
}
