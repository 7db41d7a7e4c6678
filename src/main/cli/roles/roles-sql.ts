import { tallyhook } from "../../../platform/command-line.ts";
import { migratedSchemas } from "../../../platform/postgres/schema-objects.ts";
import { wrapped } from "../../../platform/readable-text.ts";
import { type ColumnRights, type Letters, type Rights, type RoleName, roleNames } from "../../../app/rights.ts";
import {
  functionRights,
  givenColumns,
  otherRights,
  queueRoles,
  queueSchema,
  sequenceRights,
  tableDecisions,
} from "../../database-rights.ts";

/** Schemas whose rights are all decided here. Of `public`, which others use as well, only our own tables. */
const ownSchemas: readonly string[] = migratedSchemas;

/** Roles that make temporary tables: for a run's invariants, and for adding jobs in bulk. */
const temporaryRoles: readonly RoleName[] = ["receiver", "worker", "dashboard"];

/** The words for letters that are granted on a whole table or sequence. */
const privileges: Readonly<Record<string, string>> = {
  r: "select",
  d: "delete",
  L: "update",
  w: "update",
  U: "usage",
};

/** PostgreSQL's own roles by which their members reach beyond the rights that are granted here. */
const powerful = [
  "pg_read_all_data",
  "pg_write_all_data",
  "pg_read_server_files",
  "pg_write_server_files",
  "pg_execute_server_program",
  "pg_maintain",
];

export interface RolesOptions {
  /** The roles are called `<prefix>_receiver` and so on. Lower-case letters, digits and underscores. */
  prefix: string;
  /** The last migration of this program, which the database must have. */
  migration: string;
}

/**
 * The SQL that makes the roles of least privilege and grants each the rights it needs, in one transaction. It may be
 * run again: it first revokes the roles' rights on our schemas. It holds no password.
 */
export function rolesSql({ prefix, migration }: RolesOptions): string {
  const roleOf = (role: RoleName): string => `${prefix}_${role}`;
  const all = roleNames.map(roleOf).join(", ");
  return [
    head(roleNames.map(roleOf)),
    "begin;",
    "set local client_min_messages = warning;",
    beforeGranting(
      { roles: roleNames.map(roleOf), temporary: temporaryRoles.map(roleOf), bi: roleOf("bi") },
      migration,
    ),
    "-- What an earlier version granted, or a hand: grants of your own belong in a role of their own.",
    ["schema", "all tables in schema", "all sequences in schema"]
      .map((what) => inLines(`revoke all on ${what} ${ownSchemas.join(", ")} from ${all};`))
      .join("\n"),
    revokePublic(all),
    roleNames.map((role) => grantsOf(role, roleOf(role))).join("\n\n"),
    columnGrants(roleOf),
    functionGrants(all, roleOf),
    largeObjects,
    queueGrants(queueRoles.map(roleOf).join(", "), all),
    "commit;\n",
  ].join("\n\n");
}

function head(roles: readonly string[]): string {
  return [
    '-- Roles of least privilege for the database of Tallyhook: docs/operations.md, "Database roles".',
    "-- Run it in the database itself, as a superuser or as the owner of the tables, after each migrate, and after a",
    "-- restore. The owner needs CREATEROLE the first time, when the roles are made:",
    `--   ${tallyhook("roles --sql")} | psql -v ON_ERROR_STOP=1 DATABASE`,
    "-- The roles have no password. Set one for each that logs in with one, in psql, which asks for it:",
    ...roles.map((role) => `--   \\password ${role}`),
  ].join("\n");
}

const listOf = (names: readonly string[]): string => names.map(literal).join(", ");
const literal = (text: string): string => `'${text.replaceAll("'", "''")}'`;

/** Makes roles that are missing, and refuses roles with hidden rights. */
function beforeGranting(
  { roles, temporary, bi }: { roles: readonly string[]; temporary: readonly string[]; bi: string },
  migration: string,
): string {
  return `do $roles$
declare
  name text;
  found pg_roles;
  owner oid;
  owned text;
  member text;
  schema text;
  schemas constant text[] := array[${listOf(ownSchemas)}];
begin
  if to_regclass('public.tallyhook_migrations') is null
     or not exists (select from public.tallyhook_migrations m where m.name = ${literal(migration)}) then
    raise exception 'The database % lacks ${migration}.', current_database()
      using hint = 'Run it in the database of DATABASE_URL, after "${tallyhook("migrate")}" of this version.';
  end if;
  select nspowner into owner from pg_namespace where nspname = 'inbox';
  foreach name in array array[${listOf(roles)}] loop
    if not exists (select from pg_roles where rolname = name) then
      execute format('create role %I login', name);
      if name = ${literal(bi)} then
        execute format('alter role %I connection limit 5', name);
        execute format('alter role %I set default_transaction_read_only = on', name);
        -- A forgotten query ends by itself.
        execute format('alter role %I set statement_timeout = ''5min''', name);
        -- So does a forgotten transaction, which would keep partitions from being made and rows from being vacuumed.
        execute format('alter role %I set idle_in_transaction_session_timeout = ''5min''', name);
      end if;
    end if;
    select * into found from pg_roles where rolname = name;
    if found.rolsuper or found.rolcreatedb or found.rolcreaterole or found.rolreplication or found.rolbypassrls then
      raise exception 'The role % may do more than its work.', name
        using hint = format('As a superuser: alter role %I nosuperuser nocreatedb nocreaterole noreplication nobypassrls',
                            name);
    end if;
    if pg_has_role(found.oid, owner, 'member') then
      raise exception 'The role % is, or is a member of, the owner of the tables.', name
        using hint = format('revoke %I from %I, or name other roles by --prefix', pg_get_userbyid(owner), name);
    end if;
    select m.rolname into member from pg_roles m
    where m.oid <> found.oid and pg_has_role(found.oid, m.oid, 'member') and (
      m.rolsuper or m.rolcreatedb or m.rolcreaterole or m.rolreplication or m.rolbypassrls
      or m.rolname in (${listOf(powerful)}) or m.rolname = any(array[${listOf(roles)}])) limit 1;
    if member is not null then
      raise exception 'The role % is a member of %, and may do more than its work.', name, member
        using hint = format('revoke %I from %I', member, name);
    end if;
    select c.oid::regclass into owned from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where c.relowner = found.oid and n.nspname = any(schemas || '${queueSchema}'::text) limit 1;
    if owned is not null then
      raise exception 'The role % owns %.', name, owned using hint = format('alter table %s owner to %I', owned,
                                                                            pg_get_userbyid(owner));
    end if;
    execute format('revoke all on database %I from %I', current_database(), name);
    execute format('grant connect on database %I to %I', current_database(), name);
    if name = any(array[${listOf(temporary)}]) then
      execute format('grant temporary on database %I to %I', current_database(), name);
    end if;
    -- A table of a later version belongs to nobody until it is decided on. docs/data-model.md once set the contrary.
    foreach schema in array schemas loop
      execute format('alter default privileges for role %I in schema %I revoke all on tables from %I',
                     pg_get_userbyid(owner), schema, name);
    end loop;
  end loop;
  -- Whoever may connect could fill the disk with temporary tables.
  execute format('revoke temporary on database %I from public', current_database());
end
$roles$;`;
}

/** In `public` no role may make tables: since PostgreSQL 15 that takes an explicit grant. */
function revokePublic(all: string): string {
  const tables = Object.keys(tableDecisions).filter((name) => name.startsWith("public."));
  return (
    "-- The default of PostgreSQL 15; a database of an earlier one may have it otherwise.\n" +
    "revoke create on schema public from public;\n" +
    `${inLines(`revoke create on schema public from ${all};`)}\n` +
    `${inLines(`grant usage on schema public to ${all};`)}\n` +
    inLines(`revoke all on ${tables.join(", ")} from ${all};`)
  );
}

function grantsOf(role: RoleName, name: string): string {
  const of = (relations: Readonly<Record<string, Rights>>): [string, ColumnRights][] =>
    Object.entries(relations).flatMap(([relation, { [role]: right }]) =>
      right === undefined
        ? []
        : [[relation, typeof right === "string" ? { all: right } : right] as [string, ColumnRights]],
    );
  const tables = of({ ...tableDecisions, ...otherRights });
  const sequences = of(sequenceRights);
  const schemas = new Set([...tables, ...sequences].map(([relation]) => relation.split(".", 1)[0] ?? ""));
  schemas.delete("public");
  const columns = tables.flatMap(([relation, right]) =>
    (["select", "insert", "update"] as const).flatMap((privilege) => {
      const named = right[privilege];
      return named === undefined ? [] : [`grant ${privilege} (${named.join(", ")}) on ${relation} to ${name};`];
    }),
  );
  return [
    `-- ${name}`,
    `grant usage on schema ${[...schemas].join(", ")} to ${name};`,
    ...wholeGrants(
      // By columns (columnGrants).
      tables.map(([relation, { all = "" }]) => [relation, all.replaceAll(/[aw]/g, "")]),
      "",
      name,
    ),
    ...columns,
    ...wholeGrants(
      sequences.map(([relation, { all = "" }]) => [relation, all]),
      "sequence ",
      name,
    ),
  ]
    .map(inLines)
    .join("\n");
}

/** One statement for all relations with the same rights. */
function wholeGrants(relations: readonly (readonly [string, Letters])[], kind: string, name: string): string[] {
  const byLetters = new Map<Letters, string[]>();
  for (const [relation, letters] of relations) {
    if (letters !== "") byLetters.set(letters, [...(byLetters.get(letters) ?? []), relation]);
  }
  return [...byLetters].map(
    ([letters, named]) => `grant ${privilegesOf(letters)} on ${kind}${named.join(", ")} to ${name};`,
  );
}

const privilegesOf = (letters: Letters): string =>
  Array.from(letters, (letter) => {
    const privilege = privileges[letter];
    if (privilege === undefined) throw new TypeError(`there is no right "${letter}"`);
    return privilege;
  }).join(", ");

/**
 * SQL condition on `pg_attribute a` and `pg_attrdef d`: the database fills the column of a new row by itself, with a
 * number, a random id, its clock or the login, so that no role chooses it.
 */
export const filledColumnsSql = `(a.attidentity <> '' or a.attgenerated <> ''
  or coalesce(pg_get_expr(d.adbin, d.adrelid), '') ~ '^((now|clock_timestamp|nextval|gen_random_uuid)\\(|SESSION_USER)')`;

/** The columns that the letters a and w cover: from the catalogue, so that the rule exists once. */
function columnGrants(roleOf: (role: RoleName) => string): string {
  const wanted = Object.entries({ ...tableDecisions, ...otherRights }).flatMap(([relation, rights]) =>
    roleNames.flatMap((role) => {
      const right = rights[role];
      const letters = (typeof right === "string" ? right : right?.all) ?? "";
      return ["a", "w"]
        .filter((letter) => letters.includes(letter))
        .map((letter) => `('${roleOf(role)}', '${relation}', '${letter}')`);
    }),
  );
  return `-- Inserts and updates reach no column that the database fills by itself, and updates no key.
do $columns$
declare
  wanted record;
begin
  for wanted in
    select w.role, w.relation, case w.letter when 'a' then 'insert' else 'update' end as privilege,
           string_agg(quote_ident(a.attname), ', ' order by a.attnum) as columns
    from (values
${inLines(`      ${wanted.join(", ")}`)}
    ) as w(role, relation, letter)
    join pg_attribute a on a.attrelid = w.relation::regclass and a.attnum > 0 and not a.attisdropped
    left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
    where (not ${filledColumnsSql}
        or w.relation || '.' || a.attname = any(array[
${inLines(`          ${givenColumns.map(literal).join(", ")}`)}]))
      and not (w.letter = 'w' and exists (
        select from pg_index i where i.indrelid = a.attrelid and i.indisprimary and a.attnum = any(i.indkey)))
    group by w.role, w.relation, w.letter
  loop
    execute format('grant %s (%s) on %s to %I', wanted.privilege, wanted.columns, wanted.relation, wanted.role);
  end loop;
end
$columns$;`;
}

/** Functions with the owner's rights, which PostgreSQL lets every role call by default. */
function functionGrants(all: string, roleOf: (role: RoleName) => string): string {
  const names = Object.keys(functionRights);
  return [
    "-- Functions with the rights of the owner.",
    inLines(`revoke all on function ${names.join(", ")} from public, ${all};`),
    ...roleNames.flatMap((role) => {
      const called = names.filter((name) => functionRights[name]?.includes(role));
      return called.length === 0 ? [] : [inLines(`grant execute on function ${called.join(", ")} to ${roleOf(role)};`)];
    }),
  ].join("\n");
}

/**
 * Every role that may connect may store large objects, also a read-only one. The program does not use them. Only a
 * superuser can revoke the functions.
 */
const largeObjects = `-- Large objects: PostgreSQL lets everybody store them.
do $objects$
declare
  name text;
begin
  if not (select rolsuper from pg_roles where rolname = current_user) then
    if has_function_privilege('public', 'pg_catalog.lo_from_bytea(oid, bytea)', 'execute') then
      raise warning 'every role may store large objects in this database: run this SQL once as a superuser, who takes that away';
    end if;
    return;
  end if;
  for name in
    select p.oid::regprocedure from pg_proc p
    where p.pronamespace = 'pg_catalog'::regnamespace
      and p.proname in ('lo_creat', 'lo_create', 'lo_from_bytea', 'lo_put', 'lo_truncate', 'lo_truncate64',
                        'lo_unlink', 'lowrite')
  loop
    execute format('revoke execute on function %s from public', name);
  end loop;
end
$objects$;`;

/** BullMQ makes its own tables. They are not there when the queue is in Redis. */
function queueGrants(queueRolesList: string, all: string): string {
  const [tables, sequences] = [`all tables in schema ${queueSchema}`, `all sequences in schema ${queueSchema}`];
  const statements = [
    ...[`schema ${queueSchema}`, tables, sequences].map((what) => `revoke all on ${what} from ${all};`),
    `grant usage on schema ${queueSchema} to ${queueRolesList};`,
    `grant select, insert, update, delete on ${tables} to ${queueRolesList};`,
    `grant select, usage on ${sequences} to ${queueRolesList};`,
  ];
  return [
    "-- The job queue, where it is in PostgreSQL: its jobs are wake-ups.",
    "do $queue$",
    "begin",
    `if to_regnamespace('${queueSchema}') is not null then`,
    ...statements.map((statement) => `  ${inLines(statement)}`),
    "end if;",
    "end",
    "$queue$;",
  ].join("\n");
}

/** In lines of 120 columns. */
const inLines = (statement: string): string => wrapped(statement, { width: 120, indent: "  " });
