import type { Knex } from "knex";
import { clearOthers, raise } from "../conditions.ts";
import { zoneOf } from "../desk.ts";
import type { AlertDesk } from "../desk.ts";
import { writeMark } from "../marks.ts";
import { ratioConditions, ratioEnd } from "../rules/chargeback-ratio.ts";

interface RatioRow {
  brand: string;
  programme: string;
  disputes: string;
  headroom: string;
  ratio_percent: string | null;
}

/**
 * Looks, once an hour, how near this month's chargebacks are to what the card networks tolerate: by the same function as
 * the report network-monitor. Needs a transaction.
 */
export async function watchChargebackRatio(trx: Knex.Transaction, desk: AlertDesk): Promise<void> {
  const fresh = await trx("alerts.marks")
    .where("name", "chargeback-ratio")
    .whereRaw("updated_at > now() - interval '1 hour'")
    .first("name");
  if (fresh !== undefined) return;
  await writeMark(trx, "chargeback-ratio", {});
  const { rules } = desk.settings;
  const at = desk.serviceClock.now();
  const zone = zoneOf(desk);
  const { rows } = await trx.raw<{ rows: RatioRow[] }>(
    `select brand, programme, disputes, headroom, ratio_percent
     from reports.network_monitor(date_trunc('month', ?::timestamptz at time zone ?) at time zone ?,
                                  ?::timestamptz, ?, null, ?)
     where programme is not null and disputes > 0 and disputes >= ?::numeric * (disputes + headroom)
     order by brand, programme`,
    [
      at,
      zone,
      zone,
      new Date(at.getTime() + 1),
      zone,
      desk.networkRegion,
      rules.chargeback_ratio.share,
    ],
  );
  const conditions = rows.flatMap((row) => {
    const disputes = Number(row.disputes);
    const limit = disputes + Number(row.headroom);
    const ratio = row.ratio_percent === null ? null : Number(row.ratio_percent);
    return ratioConditions(rules, { ...row, disputes, limit, ratio }, at);
  });
  await raise(trx, desk, conditions, "sweep");
  const keep = conditions.map(({ key }) => key);
  await clearOthers(trx, desk, { prefix: "chargeback-ratio:", keep, at, end: ratioEnd }, "sweep");
}
