import type { Knex } from "knex";
import { clear } from "../conditions.ts";
import type { AlertDesk } from "../desk.ts";

/** Ends the alerts on events that were replayed and are no longer dead. Needs a transaction; idempotent. */
export async function endDeadEvents(trx: Knex.Transaction, desk: AlertDesk): Promise<void> {
  const { rows } = await trx.raw<{ rows: { key: string; event_type: string | null }[] }>(
    `select a.key, a.facts->>'event_type' as event_type
     from alerts.alerts a join inbox.progress p on p.seq = (a.facts->>'seq')::bigint
     where a.rule = 'event_dead' and a.state <> 'resolved' and starts_with(a.key, 'dead:')
       and p.state in ('applied', 'stale', 'ignored') limit 1000`,
  );
  const at = desk.clock.now();
  const cleared = rows.map(({ key, event_type: type }) => {
    return { key, at, title: `The event is alive again: ${type ?? "without a type"}` };
  });
  await clear(trx, desk, cleared, "sweep");
}
