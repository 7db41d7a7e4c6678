import { cp, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Knex } from "knex";
import {
  appliedMigrations,
  migrateToLatest,
  migrationsFolder,
} from "../../../platform/postgres/migrations.ts";
import {
  changedObjects,
  migratedSchemas,
  readLiveObjects,
} from "../../../platform/postgres/schema-objects.ts";
import { sqlArray } from "../../../platform/postgres/values.ts";

/**
 * Makes the schema that a source database has in an empty one: its numbered files, which this version has as well, and
 * then its functions, views and triggers as the source's server words them. Returns what could not be made, a sentence
 * each. Only reads the source.
 *
 * @param folder an existing folder for copies of files
 */
export async function makeFormerSchema(
  source: Knex,
  target: Knex,
  folder: string,
): Promise<string[]> {
  // Names come from the database, and become paths.
  const names = (await appliedMigrations(source)).filter((name) =>
    /^(own\/)?\d{4}_[^/]+$/.test(name),
  );
  const own = names.filter((name) => name.startsWith("own/"));
  await mkdir(join(folder, "own"), { recursive: true });
  const missing: string[] = [];
  for (const name of names) {
    const file = `${name}.sql`;
    await cp(new URL(file, migrationsFolder), join(folder, file)).catch(() => {
      missing.push(`The file migrations/${file} is gone: what it made is not rehearsed.`);
    });
  }
  const url = pathToFileURL(`${folder}/`);
  await migrateToLatest(target, {
    migrations: url,
    objects: [],
    ownMigrations: new URL("own/", url),
    ownObjects: [],
  });
  const schemas = own.length === 0 ? [] : await otherSchemas(target);
  return [...missing, ...(await copyObjects(source, target, schemas))];
}

/**
 * Notes the definitions of the copy as those that `migrate` made, but for what was changed by hand in the source: a
 * server words some otherwise when it reads its own text again. After the rows are copied.
 */
export async function adoptDefinitions(source: Knex, target: Knex): Promise<void> {
  const changed = (await changedObjects(source)) ?? [];
  for (const { kind, name, sha256 } of await readLiveObjects(target)) {
    if (changed.some((each) => each.kind === kind && each.name === name)) continue;
    await target("tallyhook_schema_objects").where({ kind, name }).update({ sha256 });
  }
}

/** Schemas that the merchant's own files made. */
async function otherSchemas(db: Knex): Promise<string[]> {
  const { rows } = await db.raw<{ rows: { name: string }[] }>(
    `select nspname as name from pg_namespace where nspname !~ '^(pg_|information_schema$|public$)'`,
  );
  return rows.map(({ name }) => name);
}

interface Definition {
  name: string;
  sql: string;
}

/** Each may need others, so they are made in rounds, until a round makes none. */
async function copyObjects(source: Knex, target: Knex, schemas: string[]): Promise<string[]> {
  let left = await definitions(source, schemas);
  await target.transaction(async (trx) => {
    await trx.raw("set local check_function_bodies = off");
    for (let before = -1; left.length !== before;) {
      before = left.length;
      const failed: Definition[] = [];
      for (const each of left) {
        const isMade = await trx
          .transaction((savepoint) => savepoint.raw(each.sql.replaceAll("?", "\\?")))
          .then(
            () => true,
            () => false,
          );
        if (!isMade) failed.push(each);
      }
      left = failed;
    }
  });
  return left.map(({ name }) => `${name} of the database could not be made in the copy.`);
}

/** Of our schemas and of these. One statement. */
async function definitions(db: Knex, schemas: string[]): Promise<Definition[]> {
  const { rows } = await db.raw<{ rows: Definition[] }>(
    `with ours as (
       select oid, nspname from pg_namespace
       where nspname = any(?::text[]))
     select 'function ' || n.nspname || '.' || p.proname as name, pg_get_functiondef(p.oid) as sql
     from pg_proc p join ours n on n.oid = p.pronamespace where p.prokind in ('f', 'p')
     union all
     select 'view ' || n.nspname || '.' || c.relname,
            format('create or replace view %I.%I %s as %s', n.nspname, c.relname,
                   'with (' || array_to_string(c.reloptions, ', ') || ')', pg_get_viewdef(c.oid))
     from pg_class c join ours n on n.oid = c.relnamespace where c.relkind = 'v'
     union all
     select 'trigger ' || t.tgname, regexp_replace(pg_get_triggerdef(t.oid), '^CREATE TRIGGER', 'create or replace trigger')
     from pg_trigger t join pg_class c on c.oid = t.tgrelid join ours n on n.oid = c.relnamespace
     where not t.tgisinternal and t.tgparentid = 0`,
    [sqlArray([...migratedSchemas, ...schemas])],
  );
  return rows;
}
