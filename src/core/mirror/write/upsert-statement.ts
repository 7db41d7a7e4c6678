import {
  type Columns,
  type GroupDefinition,
  type MirrorResource,
  type NamedGroup,
  namedGroups,
} from "../resources/resource.ts";
import { hashOfVersionSql, timeOfVersionSql } from "../version.ts";

/**
 * An array parameter: a value for each given row, null where the row has the usual value (`usualValues`). If all of them
 * are null, the array is empty.
 */
export interface GivenColumn {
  name: string;
  type: string;
}

export interface TableStatement {
  /** Bindings: a blob of JSON texts, then the given columns. */
  sql: string;
  given: readonly GivenColumn[];
}

/**
 * The fields of a state that are sent in addition to its version and columns. `position` and `length` locate its
 * content in the blob.
 */
const stateFields = { at: "timestamptz", position: "integer", length: "integer" } as const;

/** Fields that only the history has. */
const historyFields = {
  observed: "timestamptz",
  cause: "text",
  replaced: "boolean",
  absent: "text",
} as const;

export type StateField = keyof typeof stateFields | keyof typeof historyFields;

/**
 * One statement that records states in the history and brings a table's rows up to date. Each given row holds the
 * states of one object, one per group; a group that it lacks has the version ''. In rows marked `winner`, every group
 * with a higher version replaces the stored group as a whole. A row without a higher version is left alone and not
 * returned. So applying is commutative and idempotent, whatever the order and the batches. Parsing the content costs
 * most, so history and row share one parse.
 *
 * Locks are taken in one order by all: first rows that are there, by their ids (`before`), then new ones, by their ids
 * (`made`). A row that another transaction made in between is neither: waiting for its lock in the second step could
 * close a circle, so it is left alone, and the transaction starts over.
 *
 * The answer's column `what` has the kind of its rows: 'row' for a written row (`fresh`: it is new), 'missed' for one
 * that another transaction made since the statement began, one 'count' with the number of recorded states in `id`, and,
 * only if some states were known already, a 'state' for each recorded one, with its `stateKey` in `id`. For orders,
 * shortened (the whole is in test/mirror/__sql__/orders.upsert.sql):
 *
 *     with blob as …, arrays as …, given as …,
 *     recorded as (insert into mirror.versions … select 'order', id, version_at, … from given where version <> '' …),
 *     before as (select … from mirror.orders … for update),
 *     made as (insert into mirror.orders … where r.id not in (select id from before) on conflict (id) do nothing …),
 *     written as (
 *       insert into mirror.orders as t (id, last_cause, version, total, …)
 *       select r.id, r.last_cause, r.version, r.total, … from given r where r.id in (select id from before) …
 *       on conflict (id) do update set
 *         total = (case when excluded.version > t.version then excluded.total else t.total end), …
 *       where excluded.version > t.version or excluded.dunning_version > t.dunning_version or …
 *     )
 *     select 'row' as what, … from made … written … union all select 'missed', … union all select 'count', …
 */
export function tableStatement(resource: MirrorResource): TableStatement {
  const groups = namedGroups(resource);
  const given = givenColumns(resource);
  const columns = Object.entries(columnExpressions(resource, groups));
  const inHistory = groups.filter((group) => group.inHistory);
  const versions = groups.map(({ versionColumn }) => versionColumn);
  const watched = watchedColumns(resource);
  const nothing = [...versions, ...versions, ...watched, ...watched].map(() => "null").join(", ");
  const former = [
    ...watched.map((column) => `b.${column} as ${beforePrefix}${column}`),
    ...versions.map((version) => `${timeOfVersionSql(`b.${version}`)} as ${formerPrefix}${version}`),
  ];
  const names = columns.map(([column]) => column).join(", ");
  const firsts = columns.map(([, { first }]) => first).join(", ");
  const returned = [
    "t.id",
    "t.xmax = 0 as fresh",
    ...versions.map((version) => `t.${version}`),
    ...watched.map((column) => `t.${column}::text as ${afterPrefix}${column}`),
  ].join(", ");
  const sql = `
    with ${givenRows(resource)}, recorded as (
      insert into mirror.versions
        (resource, id, source_updated_at, content_hash, observed_at, cause, replaced_text, absent_fields, data)
      ${inHistory.map(historyOf).join(" union all ")}
      on conflict (resource, id, source_updated_at, content_hash, twin) do nothing
      returning resource, id, source_updated_at, content_hash
    ), before as materialized (
      select stored.* from given g cross join lateral (
        select t.id, ${[...watched.map((column) => `t.${column}::text`), ...versions.map((version) => `t.${version}`)].join(", ")}
        from mirror.${resource.table} t where t.id = g.id offset 0 for update
      ) stored
      -- Counting completes the history before the first row is locked: one order of locks for all. Each row is looked
      -- up by itself (offset 0): a plan made while the table was small would read all of it.
      where g.winner and (select count(*) from recorded) >= 0
    ), made as (
      insert into mirror.${resource.table} as t (${names})
      select ${firsts}
      from given r
      -- Not in: a filter, which keeps the order of the given rows, as a join need not.
      where r.winner and r.id not in (select id from before)
      -- Never waits for the lock of a row: one that came to be since the statement began is missed, and tried again.
      on conflict (id) do nothing
      returning ${returned}
    ), written as (
      insert into mirror.${resource.table} as t (${names})
      select ${firsts}
      from given r
      where r.winner and r.id in (select id from before)
      on conflict (id) do update set ${columns
        .flatMap(([column, { next }]) => (next === null ? [] : [`${column} = ${next}`]))
        .join(", ")}
      where ${groups.map(isNewer).join(" or ")}
      returning ${returned}
    )
    select 'row' as what, w.*, ${former.join(", ")}
    from (select * from made union all select * from written) w left join before b using (id)
    union all
    select 'missed', r.id, null, ${nothing} from given r
    where r.winner and r.id not in (select id from before) and r.id not in (select id from made)
    union all
    select 'count', count(*)::text, null, ${nothing} from recorded
    union all
    select 'state', resource || '|' || id || '|' || to_char(source_updated_at at time zone 'UTC',
      'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') || '|' || content_hash, null, ${nothing}
    from recorded where (select count(*) from recorded) < (
      select ${inHistory
        .map(({ versionColumn }) => `count(*) filter (where ${versionColumn} <> '')`)
        .join(" + ")} from given)`;
  return { sql, given };
}

/**
 * The answer has the watched columns of a written row twice: as they are, and as they were. Of each group's version it
 * has also the time of the former one: '' if the group was never seen.
 */
export const [afterPrefix, beforePrefix, formerPrefix] = ["after_", "before_", "former_"] as const;

/** Columns whose former and new values decide the kind of change (changes/kinds.ts). */
export const watchedColumns = ({ watched = [] }: MirrorResource): string[] => ["content_hash", ...watched];

/**
 * The given rows as a table expression `given`. Its bindings come from `rowBindings`. Arrays in a select list cost half
 * as much as in `from`, where the server stores each as a table, and shorter ones are filled up with nulls.
 */
export function givenRows(resource: MirrorResource): string {
  const given = givenColumns(resource);
  const usual = usualValues(resource);
  return `blob as materialized (
      select ?::bytea as bytes
    ), arrays as (
      select ${given.map(({ name, type }) => `unnest(?::${type}[]) as ${name}`).join(", ")}
    ), given as materialized (
      select ${[
        ...given.flatMap(({ name }) => (usual.has(name) ? [] : [`g.${name}`])),
        ...[...usual].map(([name, sql]) => `${sql} as ${name}`),
      ].join(", ")}
      from arrays g
    )`;
}

export function givenColumns(resource: MirrorResource): GivenColumn[] {
  const typed = (columns: Columns) =>
    Object.entries(columns).flatMap(([name, { type, isTimeOfState }]) =>
      isTimeOfState === true ? [] : [{ name, type }],
    );
  const fields = (prefix: string, types: Readonly<Record<string, string>>) =>
    Object.entries(types).map(([name, type]) => ({ name: prefix + name, type }));
  return [
    { name: "id", type: "text" },
    { name: "winner", type: "boolean" },
    { name: "last_cause", type: "text" },
    ...namedGroups(resource).flatMap((group) => [
      { name: group.versionColumn, type: "text" },
      ...fields(group.prefix, stateFields),
      ...(group.inHistory ? fields(group.prefix, historyFields) : []),
      ...typed(group.columns),
    ]),
    ...typed(resource.shared?.columns ?? {}),
  ];
}

/**
 * SQL of the columns of `given` that are computed from the arrays `g`: values that are sent only where they are
 * unusual, and others.
 */
function usualValues(resource: MirrorResource): Map<string, string> {
  const { shared, name: core } = resource;
  const values = new Map([["winner", "coalesce(g.winner, true)"]]);
  for (const group of namedGroups(resource)) {
    const { prefix: p, versionColumn: v } = group;
    values.set(v, `coalesce(g.${v}, '')`);
    values.set(`${p}content`, contentOf(group));
    values.set(`${p}at`, timeOf(group));
    values.set(`${p}hash`, hashOfVersionSql(`g.${v}`));
    if (group.inHistory) {
      values.set(`${p}cause`, `coalesce(g.${p}cause, g.last_cause)`);
      values.set(`${p}replaced`, `coalesce(g.${p}replaced, false)`);
    }
    for (const column of timesOfState(group.columns)) values.set(column, timeOf(group));
  }
  const owners = namedGroups(resource).filter(({ group }) => group === core || group === shared?.with);
  for (const column of timesOfState(shared?.columns ?? {})) {
    values.set(column, `coalesce(${owners.map(timeOf).join(", ")})`);
  }
  return values;
}

const timesOfState = (columns: Columns): string[] =>
  Object.entries(columns).flatMap(([name, { isTimeOfState }]) => (isTimeOfState === true ? [name] : []));

const timeOf = ({ prefix, versionColumn }: NamedGroup): string =>
  `coalesce(g.${prefix}at, ${timeOfVersionSql(`g.${versionColumn}`)}::timestamptz)`;

const contentOf = ({ prefix }: NamedGroup): string =>
  `convert_from(substr((select bytes from blob), g.${prefix}position, g.${prefix}length), 'UTF8')::jsonb`;

const historyOf = ({ group, prefix: p, versionColumn }: NamedGroup): string => `
  select '${group}', id, ${p}at, ${p}hash, ${p}observed, ${p}cause, ${p}replaced,
    ${p}absent::text[], ${p}content
  from given where ${versionColumn} <> ''`;

/**
 * SQL of a column's value: `first` for a new row, from the given row `r`; `next` for a stored row `t` and `excluded`.
 */
export interface ColumnExpression {
  first: string;
  /** Null if the column never changes. */
  next: string | null;
}

/** The guard against stale states: a group that is not newer than the stored one changes nothing. */
const isNewer = ({ versionColumn: v }: GroupDefinition): string => `excluded.${v} > t.${v}`;

/** Every column of a table. A group's columns change with its version; the others derive from the groups. */
function columnExpressions(resource: MirrorResource, groups: readonly NamedGroup[]): Record<string, ColumnExpression> {
  const expressions: Record<string, ColumnExpression> = {
    id: { first: "r.id", next: null },
    last_cause: { first: "r.last_cause", next: "excluded.last_cause" },
  };
  for (const group of groups) {
    const follow = (column: string, first: string) => {
      expressions[column] = { first: `r.${first}`, next: winner(group, column) };
    };
    follow(group.versionColumn, group.versionColumn);
    for (const column of Object.keys(group.columns)) follow(column, column);
    if (group.contentColumn !== undefined) follow(group.contentColumn, `${group.prefix}content`);
    if (group.group === resource.name) {
      follow("source_updated_at", `${group.prefix}at`);
      follow("content_hash", `${group.prefix}hash`);
    }
  }
  addShared(expressions, resource);
  addComputed(expressions, resource);
  return expressions;
}

const winner = (group: GroupDefinition, column: string): string =>
  `(case when ${isNewer(group)} then excluded.${column} else t.${column} end)`;

/** Shared columns: the core owns them once it was seen, the other group until then. */
function addShared(
  expressions: Record<string, ColumnExpression>,
  { shared, groups, name: core }: MirrorResource,
): void {
  const [coreGroup, otherGroup] = [groups[core], groups[shared?.with ?? ""]];
  if (coreGroup === undefined || otherGroup === undefined) return;
  const v = coreGroup.versionColumn;
  for (const column of Object.keys(shared?.columns ?? {})) {
    expressions[column] = {
      first: `r.${column}`,
      next: `(case when ${isNewer(coreGroup)} then excluded.${column}
                   when t.${v} = '' and excluded.${v} = '' and ${isNewer(otherGroup)} then excluded.${column}
                   else t.${column} end)`,
    };
  }
}

function addComputed(expressions: Record<string, ColumnExpression>, { computed = {} }: MirrorResource): void {
  const known = { ...expressions };
  const part = (column: string): ColumnExpression => {
    const expression = known[column];
    if (expression === undefined) throw new Error(`a computed column needs ${column}, which the table does not have`);
    return expression;
  };
  for (const [column, sql] of Object.entries(computed)) {
    expressions[column] = {
      first: sql((of) => part(of).first),
      next: sql((of) => part(of).next ?? `t.${of}`),
    };
  }
}
