import type { Knex } from "knex";

type Change = readonly [from: string, to: string];
type Changes = Readonly<Record<string, readonly Change[]>>;

/** Changes parts of functions of schema reports, which stay as they are otherwise. Throws where a part is not there. */
async function redefine(db: Knex, functions: Changes): Promise<void> {
  for (const [name, changes] of Object.entries(functions)) {
    const { rows } = await db.raw<{ rows: { definition: string }[] }>(
      "select pg_get_functiondef(cast(cast(? as text) as regproc)) as definition",
      [`reports.${name}`],
    );
    let definition = rows[0]?.definition ?? "";
    for (const [from, to] of changes) {
      if (!definition.includes(from)) throw new Error(`reports.${name} has no "${from}"`);
      definition = definition.replaceAll(from, to);
    }
    await db.raw(definition);
  }
}

const back = (functions: Changes): Changes =>
  Object.fromEntries(
    Object.entries(functions).map(([name, changes]) => [
      name,
      changes.toReversed().map(([from, to]): Change => [to, from]),
    ]),
  );

/**
 * Where clocks go forward at midnight, the day after the period begins at one: what is taken off by the clock, and not in time, ends
 * in that day.
 */
const lastMoment: Change = [
  "(p_to at time zone p_zone) - interval '1 microsecond'",
  "(p_to - interval '1 microsecond') at time zone p_zone",
];

/** Of two states of one time the one with the end is the last, as in mirror.chargebacks (0021). */
const tie = (last: string) =>
  `(array_agg(v.data->>'status' order by v.source_updated_at desc, ${last}))[1] as last_status`;

const functions: Changes = {
  chargebacks: [[tie("v.content_hash"), tie("v.data->>'status' collate \"C\" desc")]],
  month_end: [lastMoment],
  network_monitor: [
    lastMoment,
    [
      "(date_trunc('month', p_from at time zone p_zone) - interval '1 month') at time zone p_zone",
      "reports.day_start((date_trunc('month', p_from at time zone p_zone) - interval '1 month')::date, p_zone)",
    ],
  ],
  past_due_aging: [lastMoment],
  daily_control: [
    lastMoment,
    ["d.day::timestamp at time zone p_zone", "reports.day_start(d.day, p_zone)"],
    ["(d.day + 1)::timestamp at time zone p_zone", "reports.day_start(d.day + 1, p_zone)"],
  ],
  // An order that was paid on a later attempt was sold then, and is booked then. Orders have one currency; refunds without an
  // order have nothing in common.
  refunds: [
    ["over (partition by t.order_id order", "over (partition by coalesce(t.order_id, t.id) order"],
    [
      "t.type = 'refund' and t.created_at < p_to\n      )",
      `t.type = 'refund' and t.created_at < p_to
      ), sale as (
        select t.order_id, min(t.created_at) as sold_at from reports.transactions(p_as_of) t
        where t.type = 'sale' and t.status in ('succeeded', 'chargeback') and t.order_id in (select order_id from refund)
        group by t.order_id
      )`,
    ],
    [
      "(o.created_at at time zone p_zone)::date",
      "(coalesce(s.sold_at, o.created_at) at time zone p_zone)::date",
    ],
    [
      "o on o.id = r.order_id\n",
      "o on o.id = r.order_id\n      left join sale s on s.order_id = r.order_id\n",
    ],
  ],
  chargeback_list: [
    [
      "sum(abs(t.amount))::bigint as amount",
      `sum(abs(t.amount)) filter (where t.type = 'refund' and t.status = 'succeeded'
                 and t.created_at < l.opened_at)::bigint as amount,
               min(t.created_at) filter (where t.id = l.transaction_id) as sold_at`,
    ],
    [
      "on t.order_id = l.order_id and t.type = 'refund' and t.status = 'succeeded' and t.created_at < l.opened_at\n",
      "on t.order_id = l.order_id\n",
    ],
    [
      "(o.created_at at time zone p_zone)::date",
      "(coalesce(r.sold_at, o.created_at) at time zone p_zone)::date",
    ],
  ],
};

/** What reports show of days that begin at an odd time, and of sales on a later attempt; and what the hash of a close covers. */
export async function up(db: Knex): Promise<void> {
  await db.raw(`
    -- Where clocks go back to midnight, there are two of it and the first one counts: the other is what a cast gives.
    create function reports.day_start(p_day date, p_zone text) returns timestamptz
    language sql stable parallel safe as $$
      select case when ((m.at - interval '1 microsecond') at time zone p_zone)::date = p_day then e.at else m.at end
      from (select p_day::timestamp at time zone p_zone as at) m
      cross join (select ((p_day - 1)::timestamp at time zone p_zone) + interval '24 hours' as at) e
    $$;

    -- 'rows': of the reports' names and the hashes of their rows; 'results': also of what stands above them.
    alter table reports.closes
      add column sha256_covers text not null default 'rows' check (sha256_covers in ('rows', 'results'));
  `);
  await redefine(db, functions);
}

export async function down(db: Knex): Promise<void> {
  await redefine(db, back(functions));
  await db.raw(`
    alter table reports.closes drop column sha256_covers;
    drop function reports.day_start`);
}
