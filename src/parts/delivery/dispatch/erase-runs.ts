import type { Knex } from "knex";
import { redactTexts } from "../../../platform/postgres/redact-texts.ts";
import { sqlArray } from "../../../platform/postgres/values.ts";
import { lockPlanning } from "./plan-runs.ts";

/**
 * Makes runs of these objects name the same states as their changes after an erasure; where the feed has dropped the
 * change, no state, so that the run uses the mirror's present object. Needs the erasure's transaction, after
 * `eraseChanges`, at READ COMMITTED. Idempotent.
 */
export async function eraseRuns(trx: Knex.Transaction, ids: readonly string[]): Promise<void> {
  // No process plans a run from an earlier read, and none removes runs in another order.
  const names = await trx("dispatch.handlers").orderBy("name").forUpdate().pluck<string[]>("name");
  for (const name of names) await lockPlanning(trx, name);
  await trx.raw(
    `update dispatch.runs r
     set change = jsonb_set(r.change, '{state}', coalesce((
       select jsonb_set(r.change->'state', '{hash}', to_jsonb(c.state_hash)) from feed.changes c
       where c.seq = r.seq and c.state_hash is not null), 'null'))
     where r.id = any(?::text[]) and jsonb_typeof(r.change->'state') = 'object'`,
    [sqlArray(ids)],
  );
}

/** Takes out the reasons of pauses that name a person. Needs the erasure's transaction; idempotent. Returns how many. */
export const erasePauseReasons = (trx: Knex.Transaction, named: (text: string) => boolean): Promise<number> =>
  redactTexts(trx, { table: "dispatch.handlers", key: "name", column: "pause_reason" }, ({ text }) => named(text));
