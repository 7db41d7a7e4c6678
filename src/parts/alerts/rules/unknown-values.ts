import type { Knex } from "knex";
import { isCatchingUp } from "../../../core/mirror/restores.ts";
import { isResource, mirrorResources, resourceNamed } from "../../../core/mirror/resources.ts";
import { allColumns } from "../../../core/mirror/resources/resource.ts";
import { sqlArray, storable } from "../../../platform/postgres/values.ts";
import type { AlertContext, FoundBy } from "../alert-context.ts";
import { raise } from "../raise-conditions.ts";
import type { AlertSettings } from "../settings.ts";
import { committedAfterSeconds, readWatermark, writeWatermark } from "../store.ts";
import type { Condition } from "../timeline.ts";
import { endsByAcknowledging, headlineText, shortened, withoutIds } from "./wording.ts";

/** Values that the interface does not name, by where they appeared. */
export type UnknownValues = ReadonlyMap<string, ReadonlySet<string>>;

/**
 * Reports each value that was never seen before, once ever. An initial import only remembers them, and so do the reads
 * of a restored database until it has caught up. Needs a transaction. Costs nothing without new values.
 */
export async function reportUnknownValues(
  trx: Knex.Transaction,
  alertContext: AlertContext,
  unknownValues: UnknownValues,
  foundBy: FoundBy,
): Promise<void> {
  const values = [...unknownValues].flatMap(([kind, seen]) =>
    [...seen].map((value) => ({ kind, value: storable(value.slice(0, 200)) })),
  );
  if (values.length === 0) return;
  const { fresh, fullKinds } = await remember(trx, values);
  if (foundBy === "import") return;
  // The reads of a restored database were new to the system before it.
  if (foundBy !== "event" && (await isCatchingUp(trx))) return;
  const { rules } = alertContext.settings;
  const at = alertContext.serviceClock.now();
  const conditions = [
    ...fresh.map((novelty) => unknownValueCondition(rules, novelty, at)),
    ...fullKinds.map((kind) => tooManyValuesCondition(rules, kind, at)),
  ];
  await raise(trx, alertContext, conditions, foundBy);
}

/** The most remembered values of each kind. A field with more holds no codes, but ids or free text. */
export const maxValues = 10_000;

/** The result of `remember`. */
export interface Remembered {
  /** The values that were new, and are known now. */
  fresh: { kind: string; value: string }[];
  /** The kinds of which further values are neither remembered nor reported. */
  fullKinds: string[];
}

/**
 * Records values and returns those that were new. If two transactions see a value first, only one gets it. One
 * statement.
 */
export async function remember(trx: Knex, values: readonly { kind: string; value: string }[]): Promise<Remembered> {
  const { rows } = await trx.raw<{ rows: { kind: string; value: string | null }[] }>(
    `with fresh as materialized (
       select distinct g.kind, g.value from unnest(?::text[], ?::text[]) as g(kind, value)
       where not exists (select from alerts.seen_values s where s.kind = g.kind and s.value = g.value)
     ), room as materialized (
       select k.kind, ? - (select count(*) from alerts.seen_values s where s.kind = k.kind) as places
       from (select distinct kind from fresh) k
     ), numbered as materialized (
       select kind, value, row_number() over (partition by kind order by value) <= places as fits
       from fresh join room using (kind)
     ), added as (
       insert into alerts.seen_values (kind, value) select kind, value from numbered where fits
       order by 1, 2 on conflict do nothing returning kind, value
     )
     select kind, value from added union all select distinct kind, null from numbered where not fits`,
    [sqlArray(values.map(({ kind }) => kind)), sqlArray(values.map(({ value }) => value)), maxValues],
  );
  return {
    fresh: rows.flatMap(({ kind, value }) => (value === null ? [] : [{ kind, value }])),
    fullKinds: rows.flatMap(({ kind, value }) => (value === null ? [kind] : [])),
  };
}

/** A value that the interface does not name, seen for the first time. It was stored verbatim. */
export function unknownValueCondition(
  rules: AlertSettings["rules"],
  { kind, value }: { kind: string; value: string },
  at: Date,
): Condition {
  const what = placeOf(kind);
  return {
    key: `new-value:${kind}:${value}`,
    rule: "event_unknown",
    severity: rules.event_unknown.severity,
    title: headlineText({ lead: `Unknown ${what}`, cause: shortened(withoutIds(value)) }),
    advice:
      "It was stored as it came. Nothing is lost. Look up in the service's changelog what it means, and change the " +
      `rules and reports that should know it. ${endsByAcknowledging}`,
    facts: [{ label: `${what.charAt(0).toUpperCase()}${what.slice(1)}`, value }],
    storedFacts: { kind, value },
    family: "new-values",
    at,
  };
}

/** A field holds ever new values, so that they are not reported any more. */
export function tooManyValuesCondition(rules: AlertSettings["rules"], kind: string, at: Date): Condition {
  const what = placeOf(kind);
  return {
    key: `new-values-end:${kind}`,
    rule: "event_unknown",
    severity: rules.event_unknown.severity,
    title: headlineText({
      lead: `More than ${maxValues} unknown values: ${what}`,
      next: "Further ones are not reported",
    }),
    advice:
      "The field holds ids or free text. Every value was stored as it came, and nothing is lost. If the service means " +
      `it so, do nothing; if not, ask its support. ${endsByAcknowledging}`,
    facts: [{ label: "Field", value: what }],
    storedFacts: { kind },
    at,
  };
}

/** A kind's name for people: `status of orders`. */
function placeOf(kind: string): string {
  const [name = "", what = ""] = kind.split(".");
  const place = places[kind];
  return place ?? (isResource(name) ? `${what} of ${resourceNamed(name).table}` : kind);
}

const places: Readonly<Record<string, string>> = {
  "event.type": "event type",
  "event.api_version": "schema version of events",
  "order.failure_code": "decline code",
};

/** The most states of one step. Skipping some is harmless, since a change of the interface shows up again. */
const maxStates = 20_000;

interface Seen {
  kind: string;
  value: string;
  /** Only the initial import showed it. */
  only_import: boolean;
}

/**
 * Scans the states that the mirror recorded since the last scan for fields, and codes that no column shows, that the
 * interface does not name. It is separate from applying, which therefore does not pay for it. Needs a transaction.
 */
export async function scanStates(trx: Knex.Transaction, alertContext: AlertContext): Promise<void> {
  const mark = await readWatermark<{ until: string }>(trx, "states");
  const until = await visibleUntil(trx);
  await writeWatermark(trx, "states", { until });
  if (mark === null) return;
  const seen = (await findSeen(trx, mark.until, until)).filter((one) => !isKnown(one));
  await reportUnknownValues(trx, alertContext, byKind(seen.filter((one) => one.only_import)), "import");
  await reportUnknownValues(trx, alertContext, byKind(seen.filter((one) => !one.only_import)), "sweep");
}

async function visibleUntil(trx: Knex): Promise<string> {
  const { rows } = await trx.raw<{ rows: { until: string }[] }>(
    "select (now() - make_interval(secs => ?))::text as until",
    [committedAfterSeconds],
  );
  return rows[0]?.until ?? "";
}

/**
 * Replaces a field name that is not of the interface's form. Such a name may be personal (a map by address or name),
 * and the names stored here outlive an erasure.
 */
const hiddenFieldName = "(hidden: no plain field name)";

/** The names of fields, and the codes that no column shows, in states of this period. One statement. */
async function findSeen(trx: Knex, from: string, until: string): Promise<Seen[]> {
  const groups = mirrorResources.flatMap(({ name, shared }) => [name, shared?.with ?? []].flat());
  const codes = mirrorResources.flatMap((resource) =>
    Object.keys(resource.known.codes)
      .filter((code) => !Object.hasOwn(allColumns(resource), code))
      .map((code) => ({ resource: resource.name, code })),
  );
  const { rows } = await trx.raw<{ rows: Seen[] }>(
    `with recent as materialized (
       select split_part(resource, '.', 1) as resource, data, cause = 'import' as is_import from mirror.versions
       where recorded_at > :from::timestamptz and recorded_at <= :until::timestamptz
         and resource = any(:groups::text[]) limit :maxStates
     ),
     -- Names repeat from state to state: those that are left are looked at, not each of them.
     fields as (
       select resource, field, bool_and(is_import) as is_import
       from recent cross join lateral jsonb_object_keys(data) field group by resource, field
     )
     select kind, value, bool_and(is_import) as only_import from (
       select resource || '.field' as kind, case when field ~ :plainName then field else :hiddenName end as value,
         is_import
       from fields
       union all
       select resource || '.' || c.code, left(data->>c.code, 200), is_import
       from recent join unnest(:resources::text[], :codes::text[]) as c(resource, code) using (resource)
       where data->>c.code is not null) shown
     group by kind, value order by kind, value`,
    {
      from,
      until,
      plainName: "^[a-z][a-z0-9_]{0,63}$",
      hiddenName: hiddenFieldName,
      groups: sqlArray(groups),
      resources: sqlArray(codes.map(({ resource }) => resource)),
      codes: sqlArray(codes.map(({ code }) => code)),
      maxStates,
    },
  );
  return rows;
}

function isKnown({ kind, value }: Seen): boolean {
  const [name = "", what = ""] = kind.split(".");
  const { fields, codes } = resourceNamed(name).known;
  return what === "field" ? fields.has(value) : codes[what]?.has(value) === true;
}

function byKind(seen: readonly Seen[]): UnknownValues {
  const found = new Map<string, Set<string>>();
  for (const { kind, value } of seen) {
    const values = found.get(kind);
    if (values === undefined) found.set(kind, new Set([value]));
    else values.add(value);
  }
  return found;
}
