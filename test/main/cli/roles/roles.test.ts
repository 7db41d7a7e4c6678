import { randomBytes } from "node:crypto";
import type { Knex } from "knex";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { registerRoles } from "../../../../src/main/cli/roles/roles.ts";
import { filledColumnsSql, rolesSql } from "../../../../src/main/cli/roles/roles-sql.ts";
import { type ColumnRights, type Right, type RoleName, roleNames } from "../../../../src/app/rights.ts";
import {
  functionRights,
  givenColumns,
  otherRights,
  sequenceRights,
  tableDecisions,
} from "../../../../src/main/database-rights.ts";
import { migrateSchema } from "../../../../src/main/schema.ts";
import { lastMigration } from "../../../../src/platform/postgres/migrations.ts";
import { createDatabase } from "../../../../src/platform/postgres/pool.ts";
import { migratedSchemas } from "../../../../src/platform/postgres/schema-objects.ts";
import { migrateQueueSchema } from "../../../../src/core/queue/backend.ts";
import { type DatabaseRoles, makeDatabaseRoles } from "../../../support/database-roles.ts";
import { databaseUrl, withServer } from "../../../support/server-commands.ts";
import { useTestDatabase } from "../../../support/use-database.ts";
import { runCommand } from "../command-line.ts";
import { actsOfRoles } from "./acts-of-roles.ts";

const database = useTestDatabase();
let roles: DatabaseRoles;
beforeAll(async () => {
  roles = await makeDatabaseRoles(database.directUrl);
});
afterAll(() => roles?.drop());

interface Relation {
  name: string;
  kind: string;
  columns: string[];
}

/** Everything that rights are granted on; partitions count for their table, but for those that statements name. */
async function relations(db: Knex): Promise<Relation[]> {
  const { rows } = await db.raw<{ rows: Relation[] }>(
    `select n.nspname || '.' || c.relname as name, c.relkind::text as kind,
            array(select a.attname::text from pg_attribute a
                  where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped order by 1) as columns
     from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where n.nspname = any(?::text[]) and c.relkind in ('r', 'p', 'v', 'm', 'f', 'S')
       and (not c.relispartition or c.relname like '%\\_default')
       -- Sequences of identity columns: nobody needs a right on them.
       and not exists (select from pg_depend d where d.objid = c.oid and d.deptype = 'i' and c.relkind = 'S')
     order by 1`,
    [`{${["public", ...migratedSchemas].join(",")}}`],
  );
  return rows;
}

const decided = { ...tableDecisions, ...otherRights, ...sequenceRights };
const rightOf = (name: string, role: RoleName): ColumnRights => {
  const right: Right = decided[name]?.[role] ?? "";
  return typeof right === "string" ? { all: right } : right;
};

describe("the table of decisions", () => {
  test("has every table, view and sequence of the migrated schema, and no other", async () => {
    const names = (await relations(database.db)).map(({ name }) => name);
    expect(Object.keys(decided).sort()).toEqual(names);
  });

  test("decides on every column of a table of which a role reads some", async () => {
    for (const { name, columns } of await relations(database.db)) {
      for (const role of roleNames) {
        const { select, insert = [], update = [], withheld } = rightOf(name, role);
        if (select !== undefined || withheld !== undefined) {
          expect([...(select ?? []), ...(withheld ?? [])].sort(), `${name}, ${role}`).toEqual(columns);
        }
        expect(columns, `${name}, ${role}`).toEqual(expect.arrayContaining([...insert, ...update]));
      }
    }
  });

  test("lets nobody change what is history: not the states, the acts, nor closed months", async () => {
    const past = [
      "mirror.versions",
      "mirror.unbelieved",
      "mirror.heals",
      "people.audit",
      "reports.closed_reports",
      "reports.closed_rows",
      "reports.closed_movements",
      "reports.closed_evidence",
      "reports.preparation_ends",
      "reconcile.finding_versions",
      "reconcile.run_states",
    ];
    for (const name of past) {
      for (const role of roleNames) expect(rightOf(name, role).all ?? "", name).not.toMatch(/[wd]/);
    }
    expect(rightOf("inbox.receipts", "dashboard")).toEqual({ all: "r" });
  });
});

describe("the SQL of roles", () => {
  /** What the server says that a role may do with a table, or with any of its columns. */
  async function granted(role: RoleName): Promise<Record<string, string>> {
    const { rows } = await database.db.raw<{ rows: { name: string; letters: string }[] }>(
      `select r.name, string_agg(p.letter, '') as letters
       from jsonb_to_recordset(?::jsonb) as r(name text, kind text)
       cross join (values ('select', 'r'), ('insert', 'a'), ('update', 'w'), ('delete', 'd'), ('truncate', 'D'),
                          ('trigger', 't'), ('references', 'x'), ('usage', 'U')) as p(privilege, letter)
       where case when r.kind = 'S' and p.letter in ('r', 'w', 'U')
                    then has_sequence_privilege(?, r.name, p.privilege)
                  when r.kind <> 'S' and p.letter in ('r', 'a', 'w', 'x')
                    then has_any_column_privilege(?, r.name, p.privilege)
                  when r.kind <> 'S' and p.letter <> 'U' then has_table_privilege(?, r.name, p.privilege) end
       group by r.name`,
      [JSON.stringify(await relations(database.db)), ...Array.from({ length: 3 }, () => roles.nameOf(role))],
    );
    return Object.fromEntries(rows.map(({ name, letters }) => [name, letters]));
  }
  const sorted = (text: string): string => [...new Set(text)].sort().join("");
  const lettersOf = ({ all = "", select, insert, update }: ColumnRights): string =>
    sorted(
      all.replace("L", "w") +
        (select === undefined ? "" : "r") +
        (insert === undefined ? "" : "a") +
        (update === undefined ? "" : "w"),
    );

  test.each(roleNames)("grants %s what the table says, and nothing else", async (role) => {
    const wanted = Object.keys(decided).flatMap((name) => {
      const letters = lettersOf(rightOf(name, role));
      return letters === "" ? [] : [[name, letters] as const];
    });
    const found = Object.entries(await granted(role)).map(([name, own]) => [name, sorted(own)] as const);
    expect(Object.fromEntries(found)).toEqual(Object.fromEntries(wanted));
  });

  interface WritableColumn {
    relation: string;
    name: string;
    privilege: "insert" | "update";
    /** By the database itself. */
    is_filled: boolean;
    is_key: boolean;
    /** The role may update the whole table, which its triggers refuse. */
    is_locked: boolean;
  }

  /** From the catalogue, all of them. */
  async function writableColumns(role: RoleName): Promise<WritableColumn[]> {
    const name = roles.nameOf(role);
    const { rows } = await database.db.raw<{ rows: WritableColumn[] }>(
      `select n.nspname || '.' || c.relname as relation, a.attname as name, p.privilege,
              ${filledColumnsSql} as is_filled,
              exists (select from pg_index i
                      where i.indrelid = c.oid and i.indisprimary and a.attnum = any(i.indkey)) as is_key,
              p.privilege = 'update' and has_table_privilege(:name, c.oid, 'update') as is_locked
       from pg_class c join pg_namespace n on n.oid = c.relnamespace
       join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
       left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
       cross join (values ('insert'), ('update')) as p(privilege)
       where c.relkind in ('r', 'p', 'v', 'm', 'f') and n.nspname not in ('pg_catalog', 'information_schema')
         and n.nspname !~ '^pg_(toast|temp)'
         and has_column_privilege(:name, c.oid, a.attnum, p.privilege)`.replaceAll("?", "\\?"),
      { name },
    );
    return rows;
  }

  test.each(roleNames)("lets %s write no column that the database fills by itself, and change no key", async (role) => {
    for (const column of await writableColumns(role)) {
      const { relation, name, privilege, is_locked: isLocked } = column;
      const where = `${privilege} ${relation}.${name}`;
      const isGiven = givenColumns.includes(`${relation}.${name}`);
      if (isLocked) {
        expect(["reports.closes", "reports.preparations"], where).toContain(relation);
      } else if (privilege === "update") {
        const isToken = where === "update people.sessions.token_hash";
        expect([where, column.is_key]).toEqual([where, isToken]);
      }
      if (!isLocked && !isGiven) expect([where, column.is_filled]).toEqual([where, false]);
    }
  });

  test.each(roleNames)("every table that %s may write has an act that writes it", async (role) => {
    const found = Object.entries(await granted(role))
      .filter(([name, letters]) => /[awdU]/.test(letters) && decided[name] !== undefined)
      .map(([name]) => name);
    expect(found.sort()).toEqual(Object.keys(actsOfRoles[role]).sort());
    expect(new Set((await writableColumns(role)).map(({ relation }) => relation))).toEqual(
      new Set(found.filter((name) => /[aw]/.test(lettersOf(rightOf(name, role))) && !(name in sequenceRights))),
    );
  });

  test("decides who calls each function that has the rights of the owner", async () => {
    const { rows } = await database.db.raw<{
      rows: { name: string; called_by: string; has_path: boolean }[];
    }>(
      `select n.nspname || '.' || p.proname as name,
              coalesce(p.proconfig, '{}') @> array['search_path=pg_catalog, pg_temp'] as has_path,
              coalesce((select string_agg(r.role, ' ' order by r.role) from unnest(?::text[], ?::text[]) as r(role, name)
                        where has_function_privilege(r.name, p.oid, 'execute')), '') as called_by
       from pg_proc p join pg_namespace n on n.oid = p.pronamespace
       where p.prosecdef and n.nspname = any(?::text[])`,
      [[...roleNames], roleNames.map(roles.nameOf), [...migratedSchemas]],
    );
    const found = Object.fromEntries(rows.map(({ name, called_by: by }) => [name, by]));
    const wanted = Object.entries(functionRights).map(([name, by]) => [name, [...by].sort().join(" ")] as const);
    expect(found).toEqual(Object.fromEntries(wanted));
    expect(rows.filter(({ has_path: hasPath }) => !hasPath)).toEqual([]);
  });

  test("takes back what an earlier version granted, and default privileges, when it is run again", async () => {
    const [bi, dashboard] = [roles.nameOf("bi"), roles.nameOf("dashboard")];
    await database.db.raw(`
      grant select on mirror.erasure_key, people.sessions to ${bi};
      grant select (ciphertext) on receiver.secrets to ${bi};
      grant delete on mirror.versions to ${dashboard};
      grant usage on schema people to ${bi};
      alter default privileges in schema mirror grant select on tables to ${bi}`);
    await roles.grant();
    await database.db.raw("create table mirror.later as select 1 as n");
    const { rows } = await database.db.raw<{ rows: [object] }>(
      `select has_table_privilege(:bi, 'mirror.erasure_key', 'select') as key,
              has_column_privilege(:bi, 'receiver.secrets', 'ciphertext', 'select') as secret,
              has_table_privilege(:dashboard, 'mirror.versions', 'delete') as history,
              has_schema_privilege(:bi, 'people', 'usage') as people,
              has_table_privilege(:bi, 'mirror.later', 'select') as later`,
      { bi, dashboard },
    );
    await database.db.raw("drop table mirror.later");
    expect(rows[0]).toEqual({
      key: false,
      secret: false,
      history: false,
      people: false,
      later: false,
    });
  });

  test("refuses a role that could do more than it looks, and leaves everything as it was", async () => {
    const worker = roles.nameOf("worker");
    for (const [make, undo, says] of [
      [`alter role ${worker} createdb`, `alter role ${worker} nocreatedb`, "may do more than its work"],
      [`create table inbox.own (); alter table inbox.own owner to ${worker}`, "drop table inbox.own", "owns inbox.own"],
      [
        `grant pg_read_all_data to ${worker}`,
        `revoke pg_read_all_data from ${worker}`,
        "is a member of pg_read_all_data",
      ],
      [
        `grant ${roles.nameOf("dashboard")} to ${worker}`,
        `revoke ${roles.nameOf("dashboard")} from ${worker}`,
        `is a member of ${roles.nameOf("dashboard")}`,
      ],
    ] as const) {
      await database.db.raw(make);
      await expect(roles.grant()).rejects.toThrow(says);
      await database.db.raw(undo);
    }
    await roles.grant();
  });

  test("refuses a database that is not migrated by this version", async () => {
    const sql = rolesSql({ prefix: roles.prefix, migration: "9999_later" });
    await expect(withServer(database.directUrl, (client) => client.query(sql))).rejects.toThrow(/lacks 9999_later/);
  });

  test("is granted again by an owner who is no superuser, and who migrated the database", async () => {
    const name = `t_${randomBytes(4).toString("hex")}`;
    const server = inject("serverUrl");
    await withServer(server, (client) => client.query(`create role ${name} login password '${name}'`));
    await withServer(server, (client) => client.query(`create database ${name} owner ${name}`));
    const url = new URL(databaseUrl(server, name));
    [url.username, url.password] = [name, name];
    const db = createDatabase({ url: url.href, poolMax: 2, applicationName: "tallyhook test" });
    await migrateSchema(db);
    await migrateQueueSchema(url.href);
    const own = await makeDatabaseRoles(databaseUrl(server, name));
    try {
      const sql = rolesSql({ prefix: own.prefix, migration: await lastMigration() });
      await withServer(url.href, (client) => client.query(sql));
      await withServer(own.urlOf("worker"), (client) =>
        client.query("select inbox.make_week('2030-01-07'), inbox.drop_week('2030-01-07')"),
      );
    } finally {
      await own.drop();
      await db.destroy();
      await withServer(server, (client) => client.query(`drop database ${name}`));
      await withServer(server, (client) => client.query(`drop role ${name}`));
    }
  });

  test("holds no password, and says how to set one", () => {
    const sql = rolesSql({ prefix: "shop", migration: "0001_inbox" });
    expect(sql).toContain("--   \\password shop_receiver\n");
    expect(sql.replaceAll(/^--.*$/gm, "")).not.toMatch(/password/i);
  });

  test("is all that the command prints, without a database", async () => {
    const env = { DATABASE_URL: "postgres://nobody@127.0.0.1:9/none" };
    const { out, err, error } = await runCommand(registerRoles, ["roles", "--sql", "--prefix", "shop"], { env });
    expect([error, err]).toEqual([null, ""]);
    expect(out).toMatch(/^-- .*\n[^]*\ncommit;\n$/);
    expect(out).toContain("grant update (last_used_at) on receiver.secrets to shop_receiver;");
    const refused = await runCommand(registerRoles, ["roles", "--sql", "--prefix", "x; drop"], {
      env,
    });
    expect(String(refused.error)).toMatch(/lower-case letters/);
  });
});
