import type { GroupDefinition, MirrorTable, NamedGroup } from "./table.ts";

/** SQL of a column's value: in a new row (of the given row `r`), and in a row `t` that meets `excluded`. */
export interface ColumnExpression {
  first: string;
  /** Null where the column never changes. */
  next: string | null;
}

export const isNewer = ({ versionColumn: v }: GroupDefinition): string => `excluded.${v} > t.${v}`;

/** Every column of a table. A group's columns follow its version; the rest follows from the groups. */
export function columnExpressions(
  table: MirrorTable,
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
    if (group.group === table.core) {
      follow("source_updated_at", `${group.prefix}at`);
      follow("content_hash", `${group.prefix}hash`);
    }
  }
  addShared(expressions, table);
  addComputed(expressions, table);
  return expressions;
}

const winner = (group: GroupDefinition, column: string): string =>
  `(case when ${isNewer(group)} then excluded.${column} else t.${column} end)`;

/** The core's once it was seen; until then the other group's. */
function addShared(
  expressions: Record<string, ColumnExpression>,
  { shared, groups, core }: MirrorTable,
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
  { computed = {} }: MirrorTable,
): void {
  const known = { ...expressions };
  const part = (column: string): ColumnExpression => {
    const expression = known[column];
    if (expression === undefined)
      throw new Error(`a computed column needs ${column}, which is none`);
    return expression;
  };
  for (const [column, sql] of Object.entries(computed)) {
    expressions[column] = {
      first: sql((of) => part(of).first),
      next: sql((of) => part(of).next ?? `t.${of}`),
    };
  }
}
