/**
 * What is decided of each table: what a backup does with it, and what each role of least privilege may do with it
 * (`tallyhook roles --sql`). Each part says it of its own tables; a table without a decision fails a test.
 */

/**
 * A table's treatment by a backup.
 *
 * - `keep`: no other system has it.
 * - `keep_though_rebuildable`: a reconciliation could read it from the service again. It is still kept: that takes
 * hours, and to every reader of the feed each object would be new once more.
 * - `leave`: of no use after a restore, or harmful. The table comes back empty.
 */
export type BackupDecision = "keep" | "keep_though_rebuildable" | "leave";

/** A role for each process, `reports` for printing reports and closing months, `bi` for tools that only read. */
export const roleNames = ["receiver", "worker", "reports", "dashboard", "bi"] as const;
export type RoleName = (typeof roleNames)[number];

/**
 * Letters as psql's `\dp` prints them: a insert, r select, w update, d delete; of a sequence U nextval, w setval. To
 * insert or update never covers columns that the database fills itself (`filledColumnsSql`), nor to update a key. L is
 * the right to update the whole table, which `lock table` takes; its triggers refuse the updates.
 */
export type Letters = string;

/** Rights on some columns of a table, in addition to those on all of it. */
export interface ColumnRights {
  all?: Letters;
  /** May be read. */
  select?: readonly string[];
  /** May be given in a new row; the others get their defaults, such as the time at which it was written. */
  insert?: readonly string[];
  /** May be changed. */
  update?: readonly string[];
  /** May not be read. A test holds both lists together against the schema. */
  withheld?: readonly string[];
}

export type Right = Letters | ColumnRights;

/** The rights of each role; a role that is not named has none. */
export type Rights = { readonly [role in RoleName]?: Right };

export interface TableDecision extends Rights {
  backup: BackupDecision;
}

/** The rights of database roles on a part's objects. Objects of a merchant's own migrations are backed up, and no role may use them. */
export interface DatabaseRights {
  /** With their partitions. */
  tables: Readonly<Record<string, TableDecision>>;
  /** Views, and the partitions that are named in statements: a backup has no decision of its own for them. */
  views?: Readonly<Record<string, Rights>>;
  sequences?: Readonly<Record<string, Rights>>;
  /**
   * The roles that call functions with the rights of the tables' owner. Trigger functions are never called directly.
   */
  functions?: Readonly<Record<string, readonly RoleName[]>>;
  /**
   * Columns that the database would fill itself, but that statements may set: due times and times of the last note.
   * None is the recorded time of an event, except a close's, which its seal covers and `reports.check_close` compares
   * with the clock.
   */
  given?: readonly string[];
}

export const words = (text: string): string[] => text.split(/\s+/);
