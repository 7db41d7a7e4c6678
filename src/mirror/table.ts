/** The columns that a group of fields owns, with their SQL types. */
export interface GroupDefinition {
  versionColumn: string;
  columns: Readonly<Record<string, string>>;
  /** Holds the group's canonical content. */
  contentColumn?: string;
  /** Whether every state of the group is kept in `mirror.versions`. */
  inHistory: boolean;
}

/** Gives the SQL of a column of the row as it will be. */
export type RowExpression = (column: string) => string;

/** A table of the mirror, as the groups of fields that its rows are made of. */
export interface MirrorTable {
  name: "orders" | "transactions" | "subscriptions" | "customers";
  core: string;
  /** The core group sets `source_updated_at` and `content_hash`, too. */
  groups: Readonly<Record<string, GroupDefinition>>;
  /** Columns that the core owns once it was seen, and until then the group named here. */
  shared?: { with: string; columns: Readonly<Record<string, string>> };
  /** Columns that depend on several groups: functions of the winners, so that order does not matter. */
  computed?: Readonly<Record<string, (row: RowExpression) => string>>;
  /** What a look at the core shows of computed columns; given the fields of the core (`groupFields`, `content`). */
  shown?: Readonly<Record<string, (core: RowExpression) => string>>;
}

export interface NamedGroup extends GroupDefinition {
  group: string;
  /** Begins the names of what a statement is given of it. */
  prefix: string;
}

export const namedGroups = (table: MirrorTable): NamedGroup[] =>
  Object.entries(table.groups).map(([group, definition]) => ({
    ...definition,
    group,
    prefix: `${definition.versionColumn}_`,
  }));
