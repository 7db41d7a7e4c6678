import { givenColumns, givenRows } from "./table-statement.ts";
import type { GivenColumn } from "./table-statement.ts";
import { namedGroups } from "./table.ts";
import type { MirrorTable, NamedGroup } from "./table.ts";

export interface CompareStatement {
  sql: string;
  given: readonly GivenColumn[];
}

/** Stands in a list of differing columns for the group's content as a whole. */
export const contentDiffers = "(content)";

/**
 * One statement that holds states against the stored rows, column by column and in their whole content, and gives
 * back only the rows that are not there or differ: for an equal page it answers nothing. Only reads.
 *
 * What is compared of a row: every group of fields that is given. A group that no answer of the service shows
 * (`order.dunning`) is never given, so never compared. What several groups make (`computed`) must be what the
 * stored groups make, so that a column that was edited by hand is found; and what the service shows of it
 * (`shown`) must be there. Versions are compared in their time alone: when somebody looked is no difference.
 */
export function compareStatement(table: MirrorTable): CompareStatement {
  const groups = namedGroups(table);
  const given = givenColumns(table, groups);
  const parts = groups.map((group) => ({ group, checks: checksOf(table, group) }));
  const sql = `
    with ${givenRows(groups, given)}
    select r.id, t.id is not null as found, ${parts
      .map(({ group, checks }) => `${differing(group, checks)} as ${group.prefix}differing`)
      .join(", ")}, to_jsonb(t) as stored
    from given r left join mirror.${table.name} t on t.id = r.id
    where r.winner and (t.id is null or ${parts
      .map(({ group: { versionColumn: v }, checks }) => {
        const any = checks.map(({ condition }) => condition).join(" or ");
        return `(r.${v} <> '' and (t.${v} = '' or ${any}))`;
      })
      .join(" or ")})`;
  return { sql, given };
}

interface Check {
  name: string;
  condition: string;
}

const differs = (column: string, shown = `r.${column}`): Check => ({
  name: column,
  condition: `t.${column} is distinct from ${shown}`,
});

function checksOf(table: MirrorTable, group: NamedGroup): Check[] {
  const { versionColumn: v, prefix, contentColumn } = group;
  const isCore = group.group === table.core;
  // Before the group was seen here, only what another group has put there can contradict it.
  const seen = `t.${v} <> ''`;
  const own = Object.keys(group.columns).map((column) => differs(column));
  const rest: Check[] = [
    ...(contentColumn === undefined
      ? []
      : [{ ...differs(contentColumn, `r.${prefix}content`), name: contentDiffers }]),
    ...(isCore
      ? [
          differs("source_updated_at", `r.${prefix}at`),
          { name: v, condition: `left(t.${v}, 27) <> left(r.${v}, 27)` },
        ]
      : []),
  ];
  return [
    ...[...own, ...rest].map(({ name, condition }) => ({
      name,
      condition: `(${seen} and ${condition})`,
    })),
    ...sharedChecks(table, group),
    ...shownChecks(table, group),
    ...computedChecks(table),
  ];
}

/** The columns that the core owns once it was seen here, and until then another group. */
function sharedChecks({ shared, core, groups }: MirrorTable, { group }: NamedGroup): Check[] {
  const coreVersion = groups[core]?.versionColumn;
  if (shared === undefined || coreVersion === undefined) return [];
  return Object.keys(shared.columns).map((column) => {
    const differ = differs(column).condition;
    const unlessUnseen = `(t.${coreVersion} <> '' or t.${column} is not null)`;
    const condition =
      group === core
        ? `(${unlessUnseen} and ${differ})`
        : `(r.${coreVersion} = '' and t.${coreVersion} = '' and ${differ})`;
    return { name: column, condition };
  });
}

const shownChecks = ({ shown = {}, core }: MirrorTable, group: NamedGroup): Check[] =>
  group.group === core
    ? Object.entries(shown).map(([column, sql]) =>
        differs(
          column,
          sql((field) => `r.${group.prefix}${field}`),
        ),
      )
    : [];

const computedChecks = ({ computed = {} }: MirrorTable): Check[] =>
  Object.entries(computed).map(([column, sql]) =>
    differs(column, `(${sql((part) => `t.${part}`)})`),
  );

const differing = ({ versionColumn: v }: NamedGroup, checks: readonly Check[]): string =>
  `case when r.${v} <> '' and t.id is not null then array_remove(array[${checks
    .map(({ name, condition }) => `case when ${condition} then '${name}' end`)
    .join(", ")}]::text[], null) end`;
