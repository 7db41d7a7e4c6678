import type { Knex } from "knex";
import { ConfigurationError } from "../../../platform/errors.ts";
import { migratedSchemas } from "../../../platform/postgres/schema-objects.ts";
import { sqlArray } from "../../../platform/postgres/values.ts";
import { leftSchemas } from "../../database-rights.ts";

/** A schema that others made, which a backup leaves out, and the SQL after which the next one has it. */
export interface UnreadableSchema {
  schema: string;
  grant: string;
}

interface Unreadable {
  schema: string;
  /** The first of its tables and sequences that this user may not read; quoted. */
  relation: string;
  /** A view or table elsewhere that cannot be restored without the schema; null: none. */
  needed_by: string | null;
  of_schema: string;
  of_relation: string;
}

/**
 * Schemas with a table or sequence that this user may not read whole, which `pg_dump` would fail at. Throws
 * `ConfigurationError` where one of them cannot be left out: it is Tallyhook's own or `public`, or something outside
 * needs it. One statement.
 */
export async function unreadableSchemas(db: Knex): Promise<UnreadableSchema[]> {
  const { rows } = await db.raw<{ rows: Unreadable[] }>(unreadableSql, [sqlArray(leftSchemas)]);
  for (const { schema, relation, needed_by, of_relation, of_schema } of rows) {
    const isOurs = schema === "public" || (migratedSchemas as readonly string[]).includes(schema);
    if (!isOurs && needed_by === null) continue;
    const what =
      needed_by === null
        ? `The user of DATABASE_URL may not read ${relation}`
        : `${needed_by} needs ${relation}, which the user of DATABASE_URL may not read`;
    throw new ConfigurationError(
      `${what}: no backup without it would be whole. As its owner or a superuser, run: ` +
        (isOurs ? of_relation : of_schema),
    );
  }
  return rows.map(({ schema, of_schema }) => ({ schema, grant: of_schema }));
}

// What extensions made comes back with them. Row security would hide rows from pg_dump, which then refuses the table.
const unreadableSql = `
  with relations as (
    select c.oid, n.oid as space, n.nspname as schema, c.relowner, c.relkind,
           format('%I.%I', n.nspname, c.relname) as name,
           has_schema_privilege(n.oid, 'usage') and has_table_privilege(c.oid, 'select') as may,
           c.relkind <> 'S' and row_security_active(c.oid) as is_hidden
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where c.relkind in ('r', 'p', 'S') and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
      and n.nspname <> all(?::text[])
      and not exists (select from pg_depend d
                      where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')
  ), unreadable as (
    select space, schema, min(name) as relation, min(name) filter (where relkind = 'S') as sequence,
           min(name) filter (where is_hidden) as hidden, bool_or(not may) as lacks_right,
           array_agg(distinct quote_ident(pg_get_userbyid(relowner))) as owners
    from relations where not may or is_hidden group by space, schema
  )
  select u.schema, u.relation,
         (select min(format('%I.%I', n.nspname, c.relname))
          from pg_depend d
            left join pg_rewrite w on d.classid = 'pg_rewrite'::regclass and w.oid = d.objid
            left join pg_constraint k on d.classid = 'pg_constraint'::regclass and k.oid = d.objid
            left join pg_attrdef f on d.classid = 'pg_attrdef'::regclass and f.oid = d.objid
            join pg_class c on c.oid = coalesce(w.ev_class, k.conrelid, f.adrelid)
            join pg_namespace n on n.oid = c.relnamespace
          where d.refclassid = 'pg_class'::regclass
            and d.refobjid in (select r.oid from pg_class r where r.relnamespace = u.space)
            and c.relnamespace not in (select space from unreadable)) as needed_by,
         concat_ws(' ',
           case when u.lacks_right then format('grant select on %s to %I;', u.relation, current_user) end,
           case when u.hidden is not null then format('alter role %I bypassrls;', current_user) end) as of_relation,
         concat_ws(' ',
           case when u.lacks_right then concat_ws(' ',
             format('grant usage on schema %I to %I;', u.schema, current_user),
             format('grant select on all tables in schema %I to %I;', u.schema, current_user),
             format('grant select on all sequences in schema %I to %I;', u.schema, current_user),
             (select string_agg(format('alter default privileges for role %s in schema %I grant select on %s to %I;',
                                       owner, u.schema, kind, current_user), ' ' order by owner, kind)
              from unnest(u.owners) as owner, unnest(array['tables', 'sequences']) as kind)) end,
           case when u.hidden is not null then format('alter role %I bypassrls;', current_user) end) as of_schema
  from unreadable u order by u.schema`;
