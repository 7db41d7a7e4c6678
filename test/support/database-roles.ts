import { randomBytes } from "node:crypto";
import { rolesSql } from "../../src/main/cli/roles/roles-sql.ts";
import { type RoleName, roleNames } from "../../src/app/rights.ts";
import { lastMigration } from "../../src/platform/postgres/migrations.ts";
import { withServer } from "./server-commands.ts";

/** The roles of least privilege for a database. They belong to the whole server, so each use has names of its own. */
export interface DatabaseRoles {
  readonly prefix: string;
  nameOf(role: RoleName): string;
  /** The database, by way of a login of that role. */
  urlOf(role: RoleName): string;
  /** Runs the SQL once more. */
  grant(): Promise<void>;
  /** Call it before the database is dropped. */
  drop(): Promise<void>;
}

/** Makes them by the SQL that the command prints, and gives each a password. */
export async function makeDatabaseRoles(url: string): Promise<DatabaseRoles> {
  const prefix = `t_${randomBytes(4).toString("hex")}`;
  const password = randomBytes(8).toString("hex");
  const nameOf = (role: RoleName) => `${prefix}_${role}`;
  const sql = rolesSql({ prefix, migration: await lastMigration() });
  const grant = () => withServer(url, async (client) => void (await client.query(sql)));
  await grant();
  await withServer(url, async (client) => {
    // A login hashes the password as often as it was hashed when it was set.
    await client.query("set scram_iterations = 1");
    for (const role of roleNames) {
      await client.query(`alter role ${nameOf(role)} password '${password}'`);
    }
  });
  return {
    prefix,
    nameOf,
    grant,
    urlOf(role) {
      const login = new URL(url);
      [login.username, login.password] = [nameOf(role), password];
      return login.href;
    },
    drop: () =>
      withServer(url, async (client) => {
        const names = roleNames.map(nameOf).join(", ");
        await client.query(`drop owned by ${names}; drop role ${names}`);
      }),
  };
}
