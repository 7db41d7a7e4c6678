import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { tallyhook } from "../../../platform/command-line.ts";
import { UsageError } from "../../../platform/errors.ts";
import { errorCode } from "../../../platform/postgres/errors.ts";
import type { Knex } from "knex";
import { sqlArray } from "../../../platform/postgres/values.ts";
import { leftSchemas, leftTables } from "../../database-rights.ts";

/** The files of a backup, in a folder of its own. */
export const [dumpName, manifestName] = ["database.dump", "manifest.json"] as const;

const manifestSchema = z.object({
  format: z.literal(1),
  /** The moment of its one snapshot, by the database's clock. */
  takenAt: z.iso.datetime(),
  tallyhook: z.string(),
  database: z.string(),
  /** The server's own number. */
  system: z.string().default(""),
  postgres: z.object({ server: z.string(), pgDump: z.string() }),
  /** The numbered files of the schema, oldest first. */
  migrations: z.array(z.string()),
  dump: z.object({ bytes: z.number().int(), sha256: z.string() }),
  /** Rows by table, without those that are left out. */
  rows: z.record(z.string(), z.number().int()),
  leftOut: z.array(z.string()),
  /** Ids of customers erased by then. */
  erased: z.array(z.string()),
});

const mostBytes = 200_000_000;

/** A backup's description of itself. */
export type Manifest = z.infer<typeof manifestSchema>;

/** Reads a backup's manifest. Throws `UsageError` where there is none: then the folder is no whole backup. */
export async function readManifest(folder: string): Promise<Manifest> {
  const path = join(folder, manifestName);
  let text: string;
  try {
    const { size } = await stat(path);
    // A pipe or a device would never end. A million erased customers are 40 MB.
    text = size > 0 && size <= mostBytes ? await readFile(path, "utf8") : "";
  } catch (cause) {
    throw new UsageError(
      `${path} cannot be read (${errorCode(cause)}). Name the folder of a backup that "${tallyhook("backup")}" ` +
        "made; it holds database.dump and manifest.json.",
      { cause },
    );
  }
  const read = manifestSchema.safeParse(jsonOf(text));
  if (read.success) return read.data;
  throw new UsageError(
    `${path} is not a manifest that this version knows. Use the version of Tallyhook that made the backup, or a later one.`,
  );
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Length and SHA-256 of a file. Reads all of it. */
export async function digestOf(path: string): Promise<Manifest["dump"]> {
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer);
  return { bytes: (await stat(path)).size, sha256: hash.digest("hex") };
}

/** All tables of the database but the server's own and these schemas', by name; partitions count for their table. */
export async function tablesOf(
  db: Knex,
  without: readonly string[] = leftSchemas,
): Promise<{ name: string; sql: string }[]> {
  const { rows } = await db.raw<{ rows: { name: string; sql: string }[] }>(
    `select n.nspname || '.' || c.relname as name, format('%I.%I', n.nspname, c.relname) as sql
     from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where c.relkind in ('r', 'p') and not c.relispartition
       and n.nspname !~ '^pg_' and n.nspname <> 'information_schema' and n.nspname <> all(?::text[])
     order by 1`,
    [sqlArray(without)],
  );
  return rows;
}

/** The rows of every table that a backup without these schemas keeps. Reads all of them. */
export async function countRows(db: Knex, without: readonly string[] = leftSchemas): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const { name, sql } of await tablesOf(db, without)) {
    if (leftTables.includes(name)) continue;
    const { rows } = await db.raw<{ rows: { n: string }[] }>(`select count(*) as n from ${sql}`);
    counts[name] = Number(rows[0]?.n ?? 0);
  }
  return counts;
}
