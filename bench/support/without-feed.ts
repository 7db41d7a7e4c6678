import { cp, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { benchDirectory } from "./places.ts";

const built = join(benchDirectory, "build");
const changed = join(benchDirectory, "build-without-feed");

/** The replaced parts of the statement that writes rows, so that it neither reads nor locks the former rows. */
const statementEdits: readonly (readonly [RegExp, string])[] = [
  [/, before as materialized \([\s\S]*?\), written as \(/, ", written as ("],
  [/ r\.id in \(select id from before\)/, " (select count(*) from recorded) >= 0"],
  [/b\.\w+ as (before_\w+)/g, "null::text as $1"],
  [/left\(b\.\w+, \d+\) as (former_\w+)/g, "null::text as $1"],
  [/from \(select \* from made [^)]*\) w left join before b using \(id\)/, "from written w"],
  [/union all\s+select 'missed',[\s\S]*?from made\)\s+union all/, "union all"],
];

/**
 * A second build that writes the mirror and no feed, and has no other difference. Production code has no switch for it:
 * two compiled files are changed. Returns the compiled program. Throws, or its worker does, where the code has changed
 * since this was written.
 */
export async function buildWithoutFeed(): Promise<string> {
  await rm(changed, { recursive: true, force: true });
  await cp(built, changed, { recursive: true });
  const recorder = "export async function recordChanges(trx, written) {";
  await change("src/core/mirror/changes/record-changes.js", recorder, `${recorder} return;`);
  const statement = "return { sql, given };";
  await change(
    "src/core/mirror/write/upsert-statement.js",
    statement,
    `return { sql: withoutFormerRows(sql), given };`,
    `function withoutFormerRows(sql) {
       const edits = ${JSON.stringify(statementEdits.map(([{ source, flags }, by]) => [source, flags, by]))};
       return edits.reduce((text, [source, flags, by]) => {
         const result = text.replace(new RegExp(source, flags), by);
         if (result === text) throw new Error("nothing is " + source + " any more: adapt without-feed.ts");
         return result;
       }, sql);
     }`,
  );
  return join(changed, "bench", "servers", "tallyhook.js");
}

async function change(path: string, what: string, by: string, added = ""): Promise<void> {
  const file = join(changed, path);
  const text = await readFile(file, "utf8");
  if (!text.includes(what)) throw new Error(`${path} has no "${what}" any more: adapt without-feed.ts`);
  await writeFile(file, `${text.replace(what, () => by)}\n${added}\n`);
}
