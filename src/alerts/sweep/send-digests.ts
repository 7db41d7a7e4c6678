import type { Knex } from "knex";
import { sqlArray } from "../../platform/sql-array.ts";
import { listParts } from "../channels/list-parts.ts";
import { wordingOf, zoneOf } from "../desk.ts";
import type { AlertDesk } from "../desk.ts";
import { customerFacts } from "../facts/customers.ts";
import type { AlertMessage } from "../message.ts";
import { queueMessages } from "../outbox-rows.ts";
import type { OutboxRow } from "../outbox-rows.ts";
import { lastTimeOfDay } from "../quiet-hours.ts";
import { quietEnd } from "../route.ts";
import {
  asksSomething,
  digestItem,
  digestSection,
  digestWords,
  namedEntries,
} from "../rules/digest.ts";
import type { DigestEntry, DigestState } from "../rules/digest.ts";

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
  };
}

/**
 * Writes a list for each channel that something waits for since before the last full hour, or the last time of day that
 * is set: by how things stand now, in several messages where one cannot show it all. While nothing on it asks for anything it waits. Needs a transaction; a list is
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
    await markTold(
      trx,
      rows.filter((row) => row.channel === channel),
    );
    if (entries.length === 0) continue;
    await queueMessages(trx, digestRows(desk, { channel, entries, stage, boundary }));
  }
}

/** The list of a channel, in as many messages as show all that it names. What only waits is counted in the first. */
function digestRows(
  desk: AlertDesk,
  { channel, entries, stage: first, boundary }: DigestList,
): OutboxRow[] {
  const wording = wordingOf(desk);
  const kind = desk.settings.channels[channel]?.kind;
  const waiting = entries.filter(({ section }) => section === "waiting");
  const parts = listParts(kind, namedEntries(entries), (entry) => digestItem(entry, wording));
  return parts.map((named, n): OutboxRow => {
    const stage = n === 0 ? first : `${first}:${n + 1}`;
    const which = { part: n + 1, parts: parts.length };
    const message: AlertMessage = {
      // The same for all: nothing ends a digest, and where alerts are incidents there is to be one of them at most.
      dedupKey: `digest/${channel}`,
      idempotencyKey: `${stage}/${channel}`,
      action: "trigger",
      rule: "digest",
      stage,
      links: [],
      at: boundary.toISOString(),
      ...digestWords(n === 0 ? [...named, ...waiting] : named, wording, which),
    };
    return { channel, alertId: null, message, notBefore: quietEnd(desk, message) };
  });
}

interface DigestList {
  channel: string;
  entries: readonly DigestEntry[];
  /** Of the first message. */
  stage: string;
  boundary: Date;
}

/** What waits for a list, an alert and channel a row, with all its stages that do. One statement. */
async function waitingItems(
  trx: Knex,
  { boundary, stage }: { boundary: Date; stage: string },
): Promise<Row[]> {
  const { rows } = await trx.raw<{ rows: Row[] }>(
    `select d.channel, a.id, a.rule, a.state, a.customer_id, a.amount_minor, a.currency, a.facts,
            array_agg(d.stage order by d.stage) as stages,
            -- The database's times: the clock of who took it may be another.
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

/** These and no others: what was committed since they were read stands on no list yet. One statement. */
async function markTold(trx: Knex, rows: readonly Row[]): Promise<void> {
  const items = rows.flatMap(({ channel, id, stages }) =>
    stages.map((stage) => ({ channel, id, stage })),
  );
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
  isPaid: stages.includes("recovered"),
});

/** Until when what was gathered is told now. Pure. */
function lastBoundary(desk: AlertDesk): Date {
  const { when, dailyAt } = desk.settings.digests;
  const now = desk.clock.now();
  if (when !== "daily") return new Date(Math.floor(now.getTime() / hourMs) * hourMs);
  return lastTimeOfDay(dailyAt, zoneOf(desk), now);
}
