import {
  type Columns,
  type GroupDefinition,
  type MirrorResource,
  type NamedGroup,
  namedGroups,
} from "../resources/resource.ts";

/** An array parameter: one value for each given row. */
export interface GivenColumn {
  name: string;
  type: string;
}

export interface TableStatement {
  /** Bindings: a blob of JSON texts, then the given columns. */
  sql: string;
  given: readonly GivenColumn[];
}

/** The fields given for each group of a row. `position` and `length` locate its content in the blob. */
export const groupFields = {
  at: "timestamptz",
  observed: "timestamptz",
  hash: "text",
  cause: "text",
  replaced: "boolean",
  position: "integer",
  length: "integer",
} as const;

/**
 * One statement that records states in the history and brings a table's rows up to date. Each given row holds the
 * states of one object, one per group; a group that it lacks has the version ''. In rows marked `winner`, every group
 * with a higher version replaces the stored group as a whole. A row without a higher version is left alone and not
 * returned. So applying is commutative and idempotent, whatever the order and the batches. Parsing the content costs
 * most, so history and row share one parse.
 *
 * The answer's column `what` has the kind of its rows: 'row' for a written row (`fresh`: it is new), one 'count' with
 * the number of recorded states in `id`, and, only if some states were known already, a 'state' for each recorded one,
 * with its `stateKey` in `id`. For orders, shortened (the whole is in test/mirror/__sql__/orders.upsert.sql):
 *
 *     with blob as …, given as …,
 *     recorded as (insert into mirror.versions … select 'order', id, version_at, … from given where version <> '' …),
 *     written as (
 *       insert into mirror.orders as t (id, last_cause, version, total, …)
 *       select r.id, r.last_cause, r.version, r.total, … from given r where r.winner and …
 *       on conflict (id) do update set
 *         total = (case when excluded.version > t.version then excluded.total else t.total end), …
 *       where excluded.version > t.version or excluded.dunning_version > t.dunning_version or …
 *     )
 *     select 'row' as what, * from written union all select 'count', …
 */
export function tableStatement(resource: MirrorResource): TableStatement {
  const groups = namedGroups(resource);
  const given = givenColumns(resource, groups);
  const columns = Object.entries(columnExpressions(resource, groups));
  const inHistory = groups.filter((group) => group.inHistory);
  const versions = groups.map(({ versionColumn }) => versionColumn);
  const noVersions = versions.map(() => "null").join(", ");
  const sql = `
    with ${givenRows(groups, given)}, recorded as (
      insert into mirror.versions
        (resource, id, source_updated_at, content_hash, observed_at, cause, replaced_text, data)
      ${inHistory.map(historyOf).join(" union all ")}
      on conflict (resource, id, source_updated_at, content_hash, twin) do nothing
      returning resource, id, source_updated_at, content_hash
    ), written as (
      insert into mirror.${resource.table} as t (${columns.map(([column]) => column).join(", ")})
      select ${columns.map(([, { first }]) => first).join(", ")}
      from given r
      -- Counting completes the history before the first row is locked: one order of locks for all.
      where r.winner and (select count(*) from recorded) >= 0
      on conflict (id) do update set ${columns
        .flatMap(([column, { next }]) => (next === null ? [] : [`${column} = ${next}`]))
        .join(", ")}
      where ${groups.map(isNewer).join(" or ")}
      returning t.id, t.xmax = 0 as fresh, ${versions.map((version) => `t.${version}`).join(", ")}
    )
    select 'row' as what, * from written
    union all
    select 'count', count(*)::text, null, ${noVersions} from recorded
    union all
    select 'state', resource || '|' || id || '|' || to_char(source_updated_at at time zone 'UTC',
      'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') || '|' || content_hash, null, ${noVersions}
    from recorded where (select count(*) from recorded) < (
      select ${inHistory
        .map(({ versionColumn }) => `count(*) filter (where ${versionColumn} <> '')`)
        .join(" + ")} from given)`;
  return { sql, given };
}

/** The given rows as a table expression `given`. Its bindings come from `rowBindings`. */
export function givenRows(groups: readonly NamedGroup[], given: readonly GivenColumn[]): string {
  return `blob as materialized (
      select ?::bytea as bytes
    ), given as materialized (
      select g.*, ${groups.map(contentOf).join(", ")}
      from unnest(${given.map(({ type }) => `?::${type}[]`).join(", ")})
        as g(${given.map(({ name }) => name).join(", ")})
    )`;
}

export function givenColumns(
  resource: MirrorResource,
  groups: readonly NamedGroup[],
): GivenColumn[] {
  const typed = (columns: Columns) =>
    Object.entries(columns).map(([name, { type }]) => ({ name, type }));
  return [
    { name: "id", type: "text" },
    { name: "winner", type: "boolean" },
    { name: "last_cause", type: "text" },
    ...groups.flatMap(({ prefix, versionColumn, columns }) => [
      { name: versionColumn, type: "text" },
      ...Object.entries(groupFields).map(([name, type]) => ({ name: prefix + name, type })),
      ...typed(columns),
    ]),
    ...typed(resource.shared?.columns ?? {}),
  ];
}

const contentOf = ({ prefix }: NamedGroup): string =>
  `convert_from(substr((select bytes from blob), g.${prefix}position, g.${prefix}length), 'UTF8')::jsonb
     as ${prefix}content`;

const historyOf = ({ group, prefix: p, versionColumn }: NamedGroup): string => `
  select '${group}', id, ${p}at, ${p}hash, ${p}observed, ${p}cause, ${p}replaced, ${p}content
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
function columnExpressions(
  resource: MirrorResource,
  groups: readonly NamedGroup[],
): Record<string, ColumnExpression> {
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

function addComputed(
  expressions: Record<string, ColumnExpression>,
  { computed = {} }: MirrorResource,
): void {
  const known = { ...expressions };
  const part = (column: string): ColumnExpression => {
    const expression = known[column];
    if (expression === undefined)
      throw new Error(`a computed column needs ${column}, which the table does not have`);
    return expression;
  };
  for (const [column, sql] of Object.entries(computed)) {
    expressions[column] = {
      first: sql((of) => part(of).first),
      next: sql((of) => part(of).next ?? `t.${of}`),
    };
  }
}
