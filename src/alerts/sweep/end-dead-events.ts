import type { Knex } from "knex";
import { clear } from "../conditions.ts";
import type { AlertDesk } from "../desk.ts";
import { deadEventEnd } from "../rules/events.ts";

/** Ends the alerts on events that were replayed and are no longer dead. Needs a transaction; idempotent. */
export async function endDeadEvents(trx: Knex.Transaction, desk: AlertDesk): Promise<void> {
  const { rows } = await trx.raw<{
    rows: { key: string; seq: string; event_type: string | null }[];
  }>(
    `select a.key, p.seq, a.facts->>'event_type' as event_type
     from alerts.alerts a join inbox.progress p
         on p.seq = case when a.facts->>'seq' ~ '^[0-9]{1,18}$' then (a.facts->>'seq')::bigint end
     where a.rule = 'event_dead' and a.state <> 'resolved' and starts_with(a.key, 'dead:')
       and p.state in ('applied', 'stale', 'ignored') limit 1000`,
  );
  const at = desk.clock.now();
  const cleared = rows.map(({ key, seq, event_type: type }) => {
    return { key, at, end: deadEventEnd({ seq, type }) };
  });
  await clear(trx, desk, cleared, "sweep");
}
