import Table from "cli-table3";
import { type Command, InvalidArgumentError } from "commander";
import type { Knex } from "knex";
import { type Account, listAccounts, readEmail, requireAccount } from "../../people/accounts.ts";
import {
  type AccountDecision,
  addAccount,
  decideAccount,
  disabling,
  enabling,
  makeSignInLink,
  newRoles,
} from "../../people/manage-accounts.ts";
import { assertStrong, hashPassword } from "../../people/password.ts";
import {
  type Role,
  isRole,
  permissions,
  permissionsOf,
  roleNames,
} from "../../people/permissions.ts";
import { listSessions } from "../../people/sessions.ts";
import { newTotpSecret, totpAddress } from "../../people/totp.ts";
import { UsageError } from "../../platform/errors.ts";
import { nearestName } from "../../platform/nearest-name.ts";
import { inTransaction } from "../../platform/postgres/transactions.ts";
import { counted } from "../../platform/readable-text.ts";
import type { Runtime } from "../runtime.ts";
import { migratedDatabase } from "../schema.ts";
import { commandActor, parsePerson, scriptActor } from "./acting-person.ts";
import { askSecret } from "./ask-secret.ts";
import type { CliContext } from "./context.ts";

interface By {
  by?: string;
}

export function registerUsers(program: Command, context: CliContext): void {
  const users = program.command("users").description("the people who may sign in to the dashboard");
  const changing = (name: string, description: string): Command =>
    users
      .command(name)
      .description(description)
      .argument("<email>", "the e-mail address of the account", parseEmail)
      .option("--by <name>", "who does it, for the record", parsePerson);

  users
    .command("list")
    .description("list the accounts, their roles and how they sign in")
    .option("--json", "print JSON")
    .action(({ json }: { json?: boolean }) => list(context, json === true));

  users
    .command("show")
    .description("show an account, what it may do, and where it is signed in")
    .argument("<email>", "the e-mail address of the account", parseEmail)
    .action((email: string) => show(context, email));

  changing("add", "add a person; asks for a password, or takes it from standard input")
    .requiredOption(
      "--role <role>",
      `${roleNames.join(", ")}; may be given several times`,
      parseRole,
    )
    .option(
      "--no-password",
      "without a password: for those who sign in by OpenID Connect or a proxy",
    )
    .action((email: string, options: By & { role: Role[]; password: boolean }) =>
      add(context, email, options),
    );

  changing("roles", "give a person other roles than before")
    .requiredOption(
      "--role <role>",
      `${roleNames.join(", ")}; may be given several times`,
      parseRole,
    )
    .action((email: string, { by, role }: By & { role: Role[] }) =>
      change(context, { email, by }, async ({ account }) => ({
        ...newRoles(account, role),
        done: `${email} has the ${roleText(role)} now.`,
      })),
    );

  changing("password", "give a person a new password; their sessions end at once").action(
    (email: string, { by }: By) =>
      change(context, { email, by }, async () => ({
        change: { passwordHash: await askPassword(context, email) },
        act: { action: "account.password-changed" },
        done: `${email} has a new password, and is signed out everywhere.`,
      })),
  );

  changing(
    "totp",
    "ask a person for a code of an app at each sign-in; shows its secret once, and their sessions end at once",
  )
    .option("--remove", "ask for no code any more")
    .action((email: string, { by, remove }: By & { remove?: boolean }) =>
      change(context, { email, by }, async ({ runtime }) => {
        if (remove === true) {
          return {
            change: { totp: null },
            act: { action: "account.totp-removed" },
            done: `${email} is asked for no code any more, and is signed out everywhere.`,
          };
        }
        const secret = newTotpSecret();
        const totp = (await runtime.encryption()).encrypt(secret);
        return {
          change: { totp },
          act: { action: "account.totp-added" },
          // The redaction of logs knows the secret; here it is meant to be seen.
          done: `${email} is signed out everywhere. Add this to their app. It is not shown again:\n\n  ${totpAddress(secret, email)}\n`,
        };
      }),
    );

  changing("disable", "let a person in no more; their sessions end at once").action(
    (email: string, { by }: By) =>
      change(context, { email, by }, async ({ runtime }) => ({
        ...disabling(runtime.wallClock.now()),
        done: `${email} cannot sign in any more, and is signed out everywhere.`,
      })),
  );

  changing("enable", "let a person in again").action((email: string, { by }: By) =>
    change(context, { email, by }, async ({ runtime }) => ({
      ...enabling(runtime.wallClock.now()),
      done: `${email} can sign in again.`,
    })),
  );

  changing("link", "print a link that signs a person in once, within ten minutes").action(
    (email: string, { by }: By) => link(context, email, by),
  );
}

function parseEmail(text: string): string {
  try {
    return readEmail(text);
  } catch (error) {
    throw new InvalidArgumentError((error as Error).message);
  }
}

function parseRole(text: string, former: Role[] = []): Role[] {
  if (isRole(text)) return [...new Set([...former, text])];
  const near = nearestName(text, roleNames);
  throw new InvalidArgumentError(
    near === null ? `The roles are ${roleNames.join(", ")}.` : `Did you mean "${near}"?`,
  );
}

const roleText = (roles: readonly Role[]): string =>
  `${roles.length === 1 ? "role" : "roles"} ${roles.join(", ")}`;

async function askPassword(context: CliContext, email: string): Promise<string> {
  const password = await askSecret(context, `New password of ${email}`);
  await assertStrong(password, email);
  if (context.stdin.isTTY && (await askSecret(context, "Once more")) !== password) {
    throw new UsageError("The two passwords differ, so nothing was done.");
  }
  return hashPassword(password);
}

async function add(
  context: CliContext,
  email: string,
  { by, role, password }: By & { role: Role[]; password: boolean },
): Promise<void> {
  const actor = commandActor(context, by);
  await withDatabase(context, async ({ db }) => {
    const passwordHash = password ? await askPassword(context, email) : null;
    await inTransaction(db, (trx) => addAccount(trx, actor, { email, roles: role, passwordHash }));
    context.stdout.write(`${email} can sign in, with the ${roleText(role)}.\n`);
  });
}

interface Decided extends AccountDecision {
  /** What to print. */
  done: string;
}

async function change(
  context: CliContext,
  { email, by }: { email: string; by: string | undefined },
  decide: (input: { account: Account; runtime: Runtime }) => Promise<Decided>,
): Promise<void> {
  const actor = commandActor(context, by);
  await withDatabase(context, async ({ db, runtime }) => {
    const account = await requireAccount(db, email);
    const decided = await decide({ account, runtime });
    await inTransaction(db, (trx) => decideAccount(trx, actor, account, decided));
    context.stdout.write(`${decided.done}\n`);
  });
}

async function link(context: CliContext, email: string, by: string | undefined): Promise<void> {
  // It lets in who is locked out, as on a server where the only user is root.
  const actor = scriptActor(context, by);
  await withDatabase(context, async ({ db, runtime }) => {
    const account = await requireAccount(db, email);
    if (account.disabledAt !== null) {
      throw new UsageError(
        `${email} is disabled. "node src/bin/tallyhook.js users enable ${email}" first.`,
      );
    }
    const token = await inTransaction(db, (trx) =>
      makeSignInLink(trx, actor, account, runtime.wallClock.now()),
    );
    const { publicUrl, port } = runtime.config.dashboard;
    context.stdout.write(
      `${publicUrl ?? `http://127.0.0.1:${port}`}/sign-in/link?token=${token}\n`,
    );
  });
}

async function list(context: CliContext, json: boolean): Promise<void> {
  await withDatabase(context, async ({ db }) => {
    const accounts = await listAccounts(db);
    if (json) {
      context.stdout.write(`${JSON.stringify(accounts, null, 2)}\n`);
      return;
    }
    if (accounts.length === 0) {
      context.stdout.write(
        "Nobody can sign in yet. Add somebody: node src/bin/tallyhook.js users add EMAIL --role admin\n",
      );
      return;
    }
    const table = new Table({
      head: ["E-mail", "Roles", "Signs in with", "Since"],
      style: { head: [], border: [] },
    });
    for (const account of accounts) {
      table.push([
        account.email,
        account.roles.join(", "),
        waysOf(account),
        account.createdAt.toISOString(),
      ]);
    }
    context.stdout.write(`${table.toString()}\n`);
  });
}

function waysOf({ disabledAt, hasPassword, hasTotp, issuer }: Account): string {
  if (disabledAt !== null) return "nothing: disabled";
  const ways = [hasPassword && "password", hasTotp && "code", issuer !== null && issuer];
  return ways.filter((way) => way !== false).join(", ") || "a link";
}

async function show(context: CliContext, email: string): Promise<void> {
  await withDatabase(context, async ({ db, runtime }) => {
    const account = await requireAccount(db, email);
    const sessions = await listSessions(db, account.id, runtime.wallClock.now());
    const may = [...permissionsOf(account.roles)].map((name) => `  ${name}: ${permissions[name]}`);
    const lines = [
      account.email,
      `roles: ${account.roles.join(", ") || "none"}`,
      `signs in with: ${waysOf(account)}`,
      "may:",
      ...may,
      counted(sessions.length, "session"),
      ...sessions.map(
        ({ lastSeenAt, address, userAgent }) =>
          `  ${lastSeenAt.toISOString()} from ${address}, ${userAgent}`,
      ),
    ];
    context.stdout.write(`${lines.join("\n")}\n`);
  });
}

const withDatabase = (
  context: CliContext,
  work: (deps: { db: Knex; runtime: Runtime }) => Promise<void>,
): Promise<void> =>
  context.withRuntime(
    "users",
    async (runtime) => work({ db: await migratedDatabase(runtime), runtime }),
    { logLevel: "warn" },
  );
