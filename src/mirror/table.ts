/** The columns that a group of fields owns, with their SQL types. */
export interface GroupDefinition {
  versionColumn: string;
  columns: Readonly<Record<string, string>>;
}

/** Gives the SQL of a column of the row as it will be. */
export type RowExpression = (column: string) => string;

/** A table of the mirror, as the groups of fields that its rows are made of. */
export interface MirrorTable {
  name: "orders" | "transactions" | "subscriptions" | "customers";
  /** The first one is the core. */
  groups: Readonly<Record<string, GroupDefinition>>;
  /** Columns that the core owns once it was seen, and until then the second group. */
  shared?: Readonly<Record<string, string>>;
  /** Columns that depend on several groups: functions of the winners, so that order does not matter. */
  computed?: Readonly<Record<string, (row: RowExpression) => string>>;
}
