import type { Knex } from "knex";

interface Row {
  brand: string;
  programme: string;
  disputes: string;
  headroom: string;
  outcome: "near" | "over";
  ratio_percent: string | null;
}

/**
 * The card networks' programmes whose threshold is reached to a share of `share` in the month of `at`, by the report
 * network-monitor: the disputes, the number of disputes at which the programme applies, and the percent of settled
 * sales (null where there are none). `isOver`: every threshold is reached; in some regions an amount is one of them.
 * One statement.
 */
export async function programmesNear(
  db: Knex,
  { at, timeZone, region, share }: { at: Date; timeZone: string; region: string; share: number },
) {
  const { rows } = await db.raw<{ rows: Row[] }>(
    `select brand, programme, disputes, headroom, outcome, ratio_percent
     from reports.network_monitor(date_trunc('month', ?::timestamptz at time zone ?) at time zone ?,
                                  ?::timestamptz, ?, null, ?)
     where programme is not null and disputes > 0 and reports.is_near(disputes, disputes + headroom, ?)
     order by brand, programme`,
    [at, timeZone, timeZone, new Date(at.getTime() + 1), timeZone, region, share],
  );
  return rows.map(({ brand, programme, outcome, ...row }) => {
    const disputes = Number(row.disputes);
    return {
      brand,
      programme,
      disputes,
      limit: disputes + Number(row.headroom),
      ratio: row.ratio_percent === null ? null : Number(row.ratio_percent),
      isOver: outcome === "over",
    };
  });
}
