import type { DatabaseRights, Rights, RoleName, TableDecision } from "../app/rights.ts";
import { allParts } from "./parts.ts";

const all: readonly DatabaseRights[] = allParts.flatMap(({ rights }) => rights ?? []);
const merged = <T>(
  of: (rights: DatabaseRights) => Readonly<Record<string, T>> | undefined,
): Readonly<Record<string, T>> => Object.assign({}, ...all.map(of)) as Readonly<Record<string, T>>;

/** Every table of the migrated schema, with its partitions; a test compares. */
export const tableDecisions = merged<TableDecision>(({ tables }) => tables);
export const otherRights = merged<Rights>(({ views }) => views);
export const sequenceRights = merged<Rights>(({ sequences }) => sequences);
export const functionRights = merged<readonly RoleName[]>(({ functions }) => functions);
export const givenColumns: readonly string[] = all.flatMap(({ given = [] }) => given);

/** Tables whose rows a backup leaves out. */
export const leftTables: readonly string[] = Object.keys(tableDecisions).filter(
  (table) => tableDecisions[table]?.backup === "leave",
);

/** The schema of the job queue. */
export const queueSchema = "bullmq";
/** The roles that add or take jobs. */
export const queueRoles: readonly RoleName[] = ["receiver", "worker", "dashboard"];

/** Schemas that a backup leaves out whole: the job queue's. Its jobs are wake-ups, and `migrate` makes its tables. */
export const leftSchemas: readonly string[] = [queueSchema];
