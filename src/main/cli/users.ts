import type { Command } from "commander";
import type { Knex } from "knex";
import { type Account, listAccounts, requireAccount } from "../../app/people/accounts.ts";
import {
  adding,
  changingPassword,
  changingRoles,
  changingTotp,
  disabling,
  enabling,
  linking,
} from "../../app/people/account-acts.ts";
import { ActRefused } from "../../app/people/act.ts";
import { assertStrong, hashPassword } from "../../app/people/password.ts";
import { type Role, permissions, permissionsOf, roleNames } from "../../app/people/permissions.ts";
import { type ListedSession, listSessions } from "../../app/people/sessions.ts";
import { totpAddress } from "../../app/people/totp.ts";
import { tallyhook } from "../../platform/command-line.ts";
import { UsageError } from "../../platform/errors.ts";
import { nearestName } from "../../platform/nearest-name.ts";
import { counted } from "../../platform/readable-text.ts";
import { type Opened, registerReading, withDatabase } from "../../app/cli/command.ts";
import { registerAct } from "../../app/cli/act-command.ts";
import { askSecret } from "../../app/cli/ask-secret.ts";
import type { CliContext } from "../../app/cli/context.ts";
import { type Columns, tableText } from "../../app/cli/table.ts";

export function registerUsers(program: Command, context: CliContext): void {
  const users = program.command("users");

  const list = users.command("list").description("list the accounts, their roles and how they sign in");
  list.option("--json", "print JSON").action(({ json }: { json?: boolean }) => printAll(context, json === true));

  const show = users.command("show").description("show an account, what it may do, and where it is signed in");
  registerReading(show, context, {
    takes: { email: { ...account, is: adding.fields.email } },
    async read({ db, runtime }, { email: given }) {
      const found = await accountNamed(db, given);
      return { account: found, sessions: await listSessions(db, found.id, runtime.wallClock.now()) };
    },
    text: accountText,
  });

  registerAct(users, context, {
    act: adding,
    name: "add",
    description: "add a person; asks for a password, or takes it from standard input",
    takes: {
      email: { flags: "<email>", says: "the e-mail address of the account" },
      role: roleOption,
    },
    by: forTheRecord,
    deps(opened, { password }) {
      const deps = accountDeps(opened);
      const ask = (email: string) => askPassword(context, email);
      return { ...deps, passwordHash: password === false ? async () => null : ask };
    },
    say: ({ email, roles }) => `${email} can sign in, with the ${roleText(roles)}.\n`,
    hints: {
      hindered: `"${tallyhook("users roles")}", "password" and "enable" change it.`,
    },
  }).option("--no-password", "without a password: for those who sign in by OpenID Connect or a proxy");

  registerAct(users, context, {
    act: changingRoles,
    name: "roles",
    description: "replace the roles of a person",
    takes: { account, role: roleOption },
    by: forTheRecord,
    deps: accountDeps,
    say: ({ email }, { input }) => `${email} has the ${roleText(input.role)} now.\n`,
    hints: unknownHint,
  });

  registerAct(users, context, {
    act: {
      ...changingPassword,
      // It is asked for before anything is locked.
      async run({ db }: AccountDeps, call) {
        const { email } = await accountNamed(db, call.input.account);
        const passwordHash = await askPassword(context, email);
        return changingPassword.run({ db, passwordHash }, call);
      },
    },
    name: "password",
    description: "give a person a new password; their sessions end immediately",
    takes: { account },
    by: forTheRecord,
    deps: accountDeps,
    say: ({ email }) => `${email} has a new password, and is signed out everywhere.\n`,
    hints: unknownHint,
  });

  registerAct(users, context, {
    act: changingTotp,
    name: "totp",
    description:
      "require a code of an authenticator app at each sign-in; shows its secret once, and their sessions end " +
      "immediately",
    takes: { account, remove: { flags: "--remove", says: "no longer require a code" } },
    by: forTheRecord,
    deps: ({ db, runtime }) => ({ db, encryption: () => runtime.encryption() }),
    // The redaction of logs knows the secret; on the terminal it is meant to be seen.
    say: ({ email, secret }) =>
      secret === null
        ? `${email} no longer needs a code, and is signed out everywhere.\n`
        : `${email} is signed out everywhere. Add this to their app. It is not shown again:\n\n  ` +
          `${totpAddress(secret, email)}\n\n`,
    hints: unknownHint,
  });

  registerAct(users, context, {
    act: disabling,
    name: "disable",
    description: "disable an account; its sessions end immediately",
    takes: { account },
    by: forTheRecord,
    deps: accountDeps,
    say: ({ email }) => `${email} cannot sign in any more, and is signed out everywhere.\n`,
    hints: unknownHint,
  });

  registerAct(users, context, {
    act: enabling,
    name: "enable",
    description: "enable an account again",
    takes: { account },
    by: forTheRecord,
    deps: accountDeps,
    say: ({ email }) => `${email} can sign in again.\n`,
    hints: unknownHint,
  });

  registerAct<AccountDeps & { url: string }, { account: string }, { token: string }>(users, context, {
    act: linking,
    name: "link",
    description: "print a link that signs a person in once, within ten minutes",
    takes: { account },
    // It serves a person who is locked out, as on a server where the only user is root.
    by: { ...forTheRecord, who: "script" },
    deps(opened) {
      const { publicUrl, port } = opened.runtime.config.dashboard;
      return { ...accountDeps(opened), url: publicUrl ?? `http://127.0.0.1:${port}` };
    },
    say: ({ token }, { deps: { url } }) => `${url}/sign-in/link?token=${token}\n`,
    hints: { ...unknownHint, hindered: `"${tallyhook("users enable EMAIL")}" does.` },
  });
}

const account = { flags: "<email>", says: "the e-mail address of the account" };

const roleOption = {
  flags: "--role <role>",
  says: `${roleNames.join(", ")}; may be given several times`,
};

const forTheRecord = { who: "person", says: "name of the person who does this, for the audit" } as const;

type AccountDeps = ReturnType<typeof accountDeps>;

const accountDeps = ({ db, runtime }: Opened) => ({
  db,
  clock: runtime.wallClock,
});

const unknownHint = {
  unknown: ({ db }: { db: Knex }, input: { account: string }) => nearest(db, input.account),
};

async function nearest(db: Knex, given: string): Promise<string> {
  const known = (await listAccounts(db)).map(({ email }) => email);
  const near = nearestName(given, known);
  return near === null ? `"${tallyhook("users list")}" shows all.` : `Did you mean ${near}?`;
}

const accountNamed = (db: Knex, email: string): Promise<Account> =>
  requireAccount(db, email).catch(async (error: unknown) => {
    if (!(error instanceof ActRefused)) throw error;
    throw new UsageError(`${error.message} ${await nearest(db, email)}`, { cause: error });
  });

const roleText = (roles: readonly Role[]): string => `${roles.length === 1 ? "role" : "roles"} ${roles.join(", ")}`;

async function askPassword(context: CliContext, email: string): Promise<string> {
  const password = await askSecret(context, `New password of ${email}`);
  await assertStrong(password, email);
  if (context.stdin.isTTY && (await askSecret(context, "Once more")) !== password) {
    throw new UsageError("The two passwords differ, so nothing was done.");
  }
  return hashPassword(password);
}

const printAll = (context: CliContext, json: boolean): Promise<void> =>
  withDatabase(context, "users", async ({ db }) => {
    const accounts = await listAccounts(db);
    context.stdout.write(
      json
        ? `${JSON.stringify(accounts, null, 2)}\n`
        : accounts.length === 0
          ? `No one can sign in yet. Add a person: ${tallyhook("users add EMAIL --role admin")}\n`
          : tableText(columns, accounts),
    );
  });

const columns: Columns<Account> = {
  "E-mail": ({ email }) => email,
  Roles: ({ roles }) => roles.join(", "),
  "Signs in with": (account) => waysOf(account),
  Since: ({ createdAt }) => createdAt,
};

function waysOf({ disabledAt, hasPassword, hasTotp, issuer }: Account): string {
  if (disabledAt !== null) return "nothing: disabled";
  const ways = [hasPassword && "password", hasTotp && "code", issuer !== null && issuer];
  return ways.filter((way) => way !== false).join(", ") || "a link";
}

function accountText({ account, sessions }: { account: Account; sessions: readonly ListedSession[] }): string {
  const may = [...permissionsOf(account.roles)].map((name) => `  ${name}: ${permissions[name]}`);
  const lines = [
    account.email,
    `roles: ${account.roles.join(", ") || "none"}`,
    `signs in with: ${waysOf(account)}`,
    "may:",
    ...may,
    counted(sessions.length, "session"),
    ...sessions.map(
      ({ lastSeenAt, address, userAgent }) => `  ${lastSeenAt.toISOString()} from ${address}, ${userAgent}`,
    ),
  ];
  return `${lines.join("\n")}\n`;
}
