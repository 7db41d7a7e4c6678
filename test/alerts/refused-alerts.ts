import type { Knex } from "knex";

/** Makes writing alerts whose keys begin so fail, as a fault in what describes them would. */
export async function refuseAlerts(
  db: Knex,
  prefix: string,
  action = "raise exception 'refused' using errcode = 'check_violation'",
): Promise<void> {
  await db.raw(`
    create function alerts.refuse() returns trigger language plpgsql as $$
    begin
      if starts_with(new.key, '${prefix}') then ${action}; end if;
      return new;
    end $$;
    create trigger refuse before insert on alerts.alerts for each row execute function alerts.refuse()`);
}

/** Idempotent. */
export async function acceptAlerts(db: Knex): Promise<void> {
  await db.raw("drop function if exists alerts.refuse cascade");
}
