import { instant, text, wholeNumber } from "../../app/people/fields.ts";
import { type Opened, parserOf, registerReading, withDatabase } from "../../app/cli/command.ts";
import { isUtf8 } from "node:buffer";
import { createInterface } from "node:readline/promises";
import { Writable } from "node:stream";
import type { Command } from "commander";
import { type Actor, recordAct } from "../../app/people/audit.ts";
import { tallyhook } from "../../platform/command-line.ts";
import { ConfigurationError, UsageError } from "../../platform/errors.ts";
import { readInputFile } from "../../platform/files.ts";
import { shortLine } from "../../platform/free-text.ts";
import { inTransaction } from "../../platform/postgres/transactions.ts";
import { type SecretsContext, listSecretOverviews } from "../../core/receiver/list-secrets.ts";
import type { SecretOverview } from "../../core/receiver/secrets-overview.ts";
import { addSecret, assertSecretLimit, retireSecret } from "../../core/receiver/secrets-store.ts";
import { secretsContextOf } from "../../app/secrets-context.ts";
import { parsePerson, scriptActor } from "../../app/cli/acting-person.ts";
import { confirm } from "../../app/cli/confirm.ts";
import type { CliContext } from "../../app/cli/context.ts";
import { type Columns, tableText } from "../../app/cli/table.ts";

interface AddOptions {
  file?: string;
  notBefore?: Date;
  notAfter?: Date;
  note?: string;
  by?: string;
}

interface RetireOptions {
  by?: string;
  at?: Date;
  quietHours: number;
  yes?: boolean;
}

export function registerSecrets(program: Command, context: CliContext): void {
  const secrets = program
    .command("secrets")
    .description("signing secrets; running receivers follow a change within 5 s");

  const list = secrets
    .command("list")
    .description("list every secret, without its value: last use, and whether it is safe to retire");
  registerReading(list, context, {
    takes: {
      quietHours: {
        is: quietHours,
        flags: "--quiet-hours <n>",
        says: "hours without use after which one is safe to retire",
        default: "48",
      },
    },
    read: async (opened, input) => ({ secrets: await listSecretOverviews(await atHandIn(opened), input.quietHours) }),
    text: ({ secrets: all }) => (all.length === 0 ? noSecret : tableText(columns, all)),
    json: (found) => found,
  });

  secrets
    .command("add")
    .description("store a secret, encrypted; its value comes from standard input or a file")
    .option("--file <file>", "read the value from this file")
    .option("--not-before <time>", "do not use it before then, such as 2026-10-01T00:00:00Z", parserOf(instant))
    .option("--not-after <time>", "use it until then (ISO 8601 with offset)", parserOf(instant))
    .option("--note <text>", "a note that list shows for it", parserOf(text(shortLine)))
    .option("--by <name>", "name of the person who does this, for the audit", parsePerson)
    .action((options: AddOptions) => add(context, options));

  secrets
    .command("retire")
    .description("end a secret, now or at a given time; asks before it ends the last one")
    .argument("<id>", "as shown by list")
    .option("--at <time>", "when it ends, such as 2026-10-01T00:00:00Z (default: now)", parserOf(instant))
    .option("--quiet-hours <n>", "warn if it was used within so many hours", hours, 48)
    .option("--yes", "do not ask, even if no secret would be left")
    .option("--by <name>", "name of the person who does this, for the audit", parsePerson)
    .action((id: string, options: RetireOptions) => retire(context, id, options));
}

const noSecret =
  `There is no secret, so every delivery is refused. Run "${tallyhook("secrets add")}", or set ` +
  "SVC_WEBHOOK_SECRETS.\n";

const columns: Columns<SecretOverview> = {
  id: ({ id }) => id,
  state: ({ state }) => state,
  from: ({ notBefore }) => notBefore,
  until: ({ notAfter }) => notAfter,
  "last used": ({ lastUsedAt }) => lastUsedAt,
  "safe to retire": ({ safeToRetire: why }) => (why === null ? "no" : `yes: ${why}`),
  note: ({ note }) => note ?? "",
};

async function add(context: CliContext, options: AddOptions): Promise<void> {
  const { file, by, note, ...window } = options;
  const actor = scriptActor(context, by);
  const value = await readSecret(context, file);
  const { id, outcome } = await withSecrets(context, async ({ db, encryption, scheme, now }) => {
    if (encryption === null) throw noKey();
    if (window.notAfter !== undefined && window.notAfter <= now) {
      throw new UsageError(
        `--not-after ${window.notAfter.toISOString()} is in the past: the secret would never be used.`,
      );
    }
    await assertSecretLimit(db, now, { value });
    return inTransaction(db, async (trx) => {
      const added = await addSecret({ db: trx, encryption }, scheme, {
        value,
        ...window,
        ...(note === undefined ? {} : { note }),
      });
      if (added.outcome !== "known") {
        const subject = { kind: "secret", id: added.id };
        await recordAct(trx, actor, { action: `secret.${added.outcome}`, subject, after: window });
      }
      return added;
    });
  });
  if (outcome === "known") {
    throw new UsageError(`This secret is stored already, as ${id}; nothing was changed.`);
  }
  context.stdout.write(
    outcome === "added"
      ? `${id} was added. Running receivers use it within 5 s.\n`
      : `${id} was stored already. It is now encrypted with TALLYHOOK_ENCRYPTION_KEY; its begin and end are ` +
          "unchanged.\n",
  );
}

async function retire(context: CliContext, id: string, { at, quietHours, yes, by }: RetireOptions): Promise<void> {
  const actor = scriptActor(context, by);
  const { secret, twin, ends } = await withSecrets(context, async (atHand) => {
    const ends = at ?? atHand.now;
    const confirmLast = (reason: string) => askForLast(context, reason, yes === true);
    return {
      ...(await retireSecretConfirmed(atHand, id, { at: ends, quietHours, confirmLast, actor })),
      ends,
    };
  });
  context.stdout.write(`${id} ends ${ends.toISOString()}. Running receivers follow within 5 s.\n`);
  if (twin !== null) {
    context.stderr.write(
      `tallyhook: the same secret is in SVC_WEBHOOK_SECRETS (${twin}) and still verifies: remove it there as well, ` +
        "and restart the receivers.\n",
    );
  }
  if (secret.safeToRetire === null && secret.lastUsedAt !== null) {
    context.stderr.write(
      `tallyhook: it verified a request at ${secret.lastUsedAt.toISOString()}; after its end, what is signed with ` +
        "it is refused.\n",
    );
  }
}

async function askForLast(context: CliContext, reason: string, isYes: boolean): Promise<void> {
  if (isYes) return;
  if (!context.stdin.isTTY) {
    throw new UsageError(`${reason} Add its successor first, or add --yes to end it anyway.`);
  }
  await confirm(context, `${reason} End it anyway?`);
}

function withSecrets<T>(context: CliContext, run: (atHand: SecretsContext) => Promise<T>): Promise<T> {
  return withDatabase(context, "secrets", async (opened) => run(await atHandIn(opened)));
}

const atHandIn = ({ runtime, db }: Opened): Promise<SecretsContext> => secretsContextOf(runtime, db);

const noKey = () =>
  new ConfigurationError(
    "TALLYHOOK_ENCRYPTION_KEY is not set, so no secret can be stored. Set it to 64 hex digits, the same on every " +
      "machine (openssl rand -hex 32).",
  );

const quietHours = wholeNumber(1, 8_760, "hours");
const hours = parserOf(quietHours);

export interface RetiredSecret {
  /** The secret before the change. */
  secret: SecretOverview;
  /** The id of the same secret in the environment, which stays live; null if there is none. */
  twin: string | null;
}

/**
 * Sets the end of a secret that is stored in the database. Throws `UsageError` for an unknown secret and for one of the
 * environment. Without the last secret every delivery would be refused, so `confirmLast` is called first with the
 * reason and may throw. Nothing has been changed by then. The change is recorded as the actor's.
 */
export async function retireSecretConfirmed(
  atHand: SecretsContext,
  id: string,
  {
    at,
    quietHours,
    confirmLast,
    actor,
  }: {
    at: Date;
    quietHours: number;
    confirmLast: (reason: string) => Promise<void>;
    actor: Actor;
  },
): Promise<RetiredSecret> {
  if (id.startsWith("env:")) {
    throw new UsageError(`${id} comes from SVC_WEBHOOK_SECRETS: remove it there and restart the receivers.`);
  }
  const all = await listSecretOverviews(atHand, quietHours);
  const secret = all.find((each) => each.id === id);
  if (secret === undefined) {
    throw new UsageError(`There is no secret ${id}. "${tallyhook("secrets list")}" shows them.`);
  }
  // A later end may make a secret live again that had ended.
  if (at > atHand.now) await assertSecretLimit(atHand.db, atHand.now, { id });
  const remains = all.some((other) => other.id !== id && verifiesAt(other, at));
  if (!remains) {
    await confirmLast(
      `${id} is the only secret from ${at.toISOString()} on: without it every delivery would be refused.`,
    );
  }
  await inTransaction(atHand.db, async (trx) => {
    await retireSecret(trx, id, { now: atHand.now, at });
    const act = { action: "secret.retired", subject: { kind: "secret", id } };
    await recordAct(trx, actor, {
      ...act,
      before: { notAfter: secret.notAfter },
      after: { notAfter: at },
    });
  });
  const twin = all.find((other) => other.id === id.replace("db:", "env:"));
  return { secret, twin: twin?.id ?? null };
}

function verifiesAt({ state, notBefore, notAfter }: SecretOverview, at: Date): boolean {
  if (state === "unusable") return false;
  return (notBefore === null || notBefore <= at) && (notAfter === null || notAfter > at);
}

const maxBytes = 65_536;

/**
 * Reads a secret from a file, from standard input, or hidden from a terminal. Never from the arguments: other users of
 * the machine and the shell's history can read those. Throws `UsageError`.
 */
export async function readSecret(
  { stdin, stderr }: { stdin: NodeJS.ReadStream; stderr: NodeJS.WritableStream },
  file: string | undefined,
): Promise<string> {
  if (file !== undefined) return secretOf(await readInputFile(file));
  if (stdin.isTTY) return askFor({ stdin, stderr }, "The secret (it is not shown): ");
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stdin) {
    const part = Buffer.from(chunk as string | Buffer);
    bytes += part.length;
    chunks.push(part);
    if (bytes > maxBytes) break;
  }
  return secretOf(Buffer.concat(chunks));
}

/**
 * Drops one line break at the end, which editors and `echo` add. Throws `UsageError` for text that cannot be a signing
 * secret.
 */
function secretOf(bytes: Buffer): string {
  if (bytes.length > maxBytes) {
    throw new UsageError(`The secret is too long: at most ${maxBytes} bytes are read.`);
  }
  if (!isUtf8(bytes)) {
    throw new UsageError("This is binary data. A secret is text in UTF-8.");
  }
  return bytes.toString("utf8").replace(/\r?\n$/, "");
}

async function askFor(
  { stdin, stderr }: { stdin: NodeJS.ReadStream; stderr: NodeJS.WritableStream },
  question: string,
): Promise<string> {
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input: stdin, output: nowhere, terminal: true });
  stderr.write(question);
  try {
    return await new Promise<string>((resolve, reject) => {
      lines.once("close", () => reject(new UsageError("No secret was given.")));
      lines.once("line", resolve);
    });
  } finally {
    lines.close();
    stderr.write("\n");
  }
}
