import type { GroupDefinition, MirrorTable } from "./table.ts";

/**
 * One statement that brings many rows of a table up to date. Its only binding is a JSON array of rows; a group
 * that a row does not bring has the version ''. Every group whose version is higher replaces the stored one
 * whole, a row in which none is higher is left alone and not returned. That makes applying commutative and
 * idempotent, whatever the order and the batches.
 */
export function upsertStatement(table: MirrorTable): string {
  const groups = Object.values(table.groups);
  const [core, second] = groups;
  if (core === undefined) throw new Error(`${table.name} has no groups`);
  const shared = table.shared ?? {};
  const computed = table.computed ?? {};

  const own = Object.assign({}, ...groups.map(({ columns }) => columns)) as Record<string, string>;
  const versions = groups.map(({ versionColumn }) => versionColumn);
  const typed = { ...own, ...shared };
  const given = ["id", ...Object.keys(typed), ...versions, "last_cause"];

  const winner = (column: string) => winnerOf(table, groups, column);
  const assignments = [
    ...groups.flatMap(({ columns }) => Object.keys(columns).map((c) => `${c} = ${winner(c)}`)),
    ...versions.map((v) => `${v} = ${winner(v)}`),
    ...Object.keys(shared).map((c) => `${c} = ${sharedWinner(core, second, c)}`),
    ...Object.entries(computed).map(([c, sql]) => `${c} = ${sql(winner)}`),
    "last_cause = excluded.last_cause",
  ];
  const computedAtFirst = Object.values(computed).map((sql) => sql((column) => `r.${column}`));

  return `
    insert into mirror.${table.name} as t (${[...given, ...Object.keys(computed)].join(", ")})
    select ${[...given.map((c) => `r.${c}`), ...computedAtFirst].join(", ")}
    from json_to_recordset(?::json) as r(
      id text, last_cause text, ${versions.map((v) => `${v} text`).join(", ")},
      ${Object.entries(typed)
        .map(([c, type]) => `${c} ${type}`)
        .join(", ")})
    on conflict (id) do update set ${assignments.join(", ")}
    where ${groups.map(isNewer).join(" or ")}
    returning t.id, ${versions.map((v) => `t.${v}`).join(", ")}`;
}

const isNewer = ({ versionColumn: v }: GroupDefinition): string => `excluded.${v} > t.${v}`;

/** The value of an owned or version column after the update. */
function winnerOf(table: MirrorTable, groups: GroupDefinition[], column: string): string {
  const group = groups.find((g) => g.versionColumn === column || Object.hasOwn(g.columns, column));
  if (group === undefined) throw new Error(`${table.name}.${column} belongs to no group`);
  return `(case when ${isNewer(group)} then excluded.${column} else t.${column} end)`;
}

function sharedWinner(
  core: GroupDefinition,
  second: GroupDefinition | undefined,
  column: string,
): string {
  const fromSecond =
    second === undefined
      ? ""
      : `when t.${core.versionColumn} = '' and excluded.${core.versionColumn} = '' and ${isNewer(second)}
         then excluded.${column}`;
  return `(case when ${isNewer(core)} then excluded.${column} ${fromSecond} else t.${column} end)`;
}
