import { isUtf8 } from "node:buffer";
import { createInterface } from "node:readline/promises";
import { Writable } from "node:stream";
import type { Command } from "commander";
import { type RetiredSecret, addingSecret, quietHoursField, retiringSecret } from "../../app/secret-acts.ts";
import { secretsContextOf } from "../../app/secrets-context.ts";
import { type SecretsContext, listSecretOverviews } from "../../core/receiver/list-secrets.ts";
import type { SecretOverview } from "../../core/receiver/secrets-overview.ts";
import { tallyhook } from "../../platform/command-line.ts";
import { UsageError } from "../../platform/errors.ts";
import { readInputFile } from "../../platform/files.ts";
import { registerAct } from "../../app/cli/act-command.ts";
import { type Opened, registerReading } from "../../app/cli/command.ts";
import { confirm } from "../../app/cli/confirm.ts";
import type { CliContext } from "../../app/cli/context.ts";
import { type Columns, tableText } from "../../app/cli/table.ts";

export function registerSecrets(program: Command, context: CliContext): void {
  const secrets = program.command("secrets");

  const list = secrets
    .command("list")
    .description("list every secret, without its value: last use, and whether it is safe to retire");
  registerReading(list, context, {
    takes: {
      quietHours: {
        is: quietHoursField,
        flags: "--quiet-hours <n>",
        says: "hours without use after which one is safe to retire",
        default: "48",
      },
    },
    read: async (opened, input) => ({ secrets: await listSecretOverviews(await atHandIn(opened), input.quietHours) }),
    text: ({ secrets: all }) => (all.length === 0 ? noSecret : tableText(columns, all)),
    json: (found) => found,
  });

  registerAct(secrets, context, {
    act: addingSecret,
    name: "add",
    description: "store a secret, encrypted; its value comes from standard input or a file",
    takes: {
      notBefore: { flags: "--not-before <time>", says: "do not use it before then, such as 2026-10-01T00:00:00Z" },
      notAfter: { flags: "--not-after <time>", says: "use it until then (ISO 8601 with offset)" },
      note: { flags: "--note <text>", says: "a note that list shows for it" },
    },
    by: forTheRecord,
    async deps(opened, { file }) {
      const value = await readSecret(context, typeof file === "string" ? file : undefined);
      return { ...(await atHandIn(opened)), value };
    },
    say: ({ id, outcome }) =>
      outcome === "added"
        ? `${id} was added. Running receivers use it within 5 s.\n`
        : `${id} was stored already. It is now encrypted with TALLYHOOK_ENCRYPTION_KEY; its begin and end are ` +
          "unchanged.\n",
  }).option("--file <file>", "read the value from this file");

  registerAct(secrets, context, {
    act: retiringSecret,
    name: "retire",
    description: "end a secret, now or at a given time; asks before it ends the last one",
    takes: {
      secret: { flags: "<id>", says: "as shown by list" },
      at: { flags: "--at <time>", says: "when it ends, such as 2026-10-01T00:00:00Z (default: now)" },
      quietHours: { flags: "--quiet-hours <n>", says: "warn if it was used within so many hours", default: "48" },
    },
    by: forTheRecord,
    deps: async (opened, { yes }) => ({
      ...(await atHandIn(opened)),
      confirmLast: (reason: string) => askForLast(context, reason, yes === true),
    }),
    say(retired) {
      context.stderr.write(warningsOf(retired));
      return `${retired.id} ends ${retired.ends.toISOString()}. Running receivers follow within 5 s.\n`;
    },
    hints: { unknown: `"${tallyhook("secrets list")}" shows them.` },
  }).option("--yes", "do not ask, even if no secret would be left");
}

const forTheRecord = { who: "script", says: "name of the person who does this, for the audit" } as const;

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

const warningsOf = ({ secret, twin }: RetiredSecret): string =>
  (twin === null
    ? ""
    : `tallyhook: the same secret is in SVC_WEBHOOK_SECRETS (${twin}) and still verifies: remove it there as well, ` +
      "and restart the receivers.\n") +
  (secret.safeToRetire !== null || secret.lastUsedAt === null
    ? ""
    : `tallyhook: it verified a request at ${secret.lastUsedAt.toISOString()}; after its end, what is signed with it ` +
      "is refused.\n");

async function askForLast(context: CliContext, reason: string, isYes: boolean): Promise<void> {
  if (isYes) return;
  if (!context.stdin.isTTY) {
    throw new UsageError(`${reason} Add its successor first, or add --yes to end it anyway.`);
  }
  await confirm(context, `${reason} End it anyway?`);
}

const atHandIn = ({ runtime, db }: Opened): Promise<SecretsContext> => secretsContextOf(runtime, db);

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
