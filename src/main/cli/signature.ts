import type { Command } from "commander";
import { type SignatureExplanation, explainSignature } from "../../core/contract/signature/explain-signature.ts";
import type { SigningSecret } from "../../core/contract/signature/verification.ts";
import { wallClock } from "../../platform/clock.ts";
import { tallyhook } from "../../platform/command-line.ts";
import { UsageError } from "../../platform/errors.ts";
import { readInputFile } from "../../platform/files.ts";
import { counted } from "../../platform/readable-text.ts";
import { listSecretRows, secretFingerprint } from "../../core/receiver/secrets-store.ts";
import { instant } from "../../app/people/fields.ts";
import { parserOf, withDatabase } from "../../app/cli/command.ts";
import type { CliContext } from "../../app/cli/context.ts";

interface ExplainOptions {
  headers: string;
  body: string;
  secretFile?: string;
  at?: Date;
  json?: boolean;
}

export function registerSignatureExplain(program: Command, context: CliContext): void {
  program
    .command("signature")
    .command("explain")
    .description("explain why a captured request does or does not verify")
    .requiredOption("--headers <file>", "file with its headers: lines of Name: value, or JSON")
    .requiredOption("--body <file>", "file with its body, byte for byte as it arrived")
    .option("--secret-file <file>", "secrets to try, one a line, instead of those configured")
    .option("--at <time>", "check it at this time instead of now (ISO 8601 with offset)", parserOf(instant))
    .option("--json", "print JSON")
    .action((options: ExplainOptions) => explain(context, options));
}

async function explain(context: CliContext, options: ExplainOptions): Promise<void> {
  const { config } = context.loaded();
  const rawHeaders = parseCapturedHeaders((await readInputFile(options.headers)).toString("latin1"));
  const body = await readInputFile(options.body);
  const secrets =
    options.secretFile === undefined
      ? await configuredSecrets(context)
      : secretsOf((await readInputFile(options.secretFile)).toString("utf8"));
  const { scheme, toleranceSeconds } = config.signature;
  const now = options.at ?? wallClock.now();
  const request = { rawHeaders, body, secrets, now, toleranceSeconds };
  const explanation = explainSignature(request, scheme);
  if (secrets.length === 0)
    explanation.advice.push(`"${tallyhook("secrets add")}" adds a secret. SVC_WEBHOOK_SECRETS may hold one instead.`);
  const text =
    options.json === true
      ? `${JSON.stringify({ scheme, secretsTried: secrets.map(({ id }) => id), ...explanation })}\n`
      : inWords(explanation);
  context.stdout.write(text);
}

function inWords({ verification, ageSeconds, advice }: SignatureExplanation): string {
  const verdict = verification.ok ? "accepted" : `refused (${verification.reason})`;
  const age = ageSeconds === null ? "no time is given" : `${ageSeconds} s before the time of the check`;
  return [`The receiver's verdict: ${verdict}`, `Signed: ${age}`, "", ...advice.map((each) => `- ${each}`), ""].join(
    "\n",
  );
}

/** The secrets of the environment and of the database, live or not. */
async function configuredSecrets(context: CliContext): Promise<SigningSecret[]> {
  return withDatabase(context, "signature", async ({ db, runtime }) => {
    const environment = runtime.secrets.webhookSecrets.map((value) => asSecret("env", value));
    const rows = await listSecretRows(db);
    if (rows.length === 0) return environment;
    if (runtime.config.encryptionKey === "none") {
      const many = counted(rows.length, "stored secret is", "stored secrets are");
      context.stderr.write(`tallyhook: ${many} left out, because TALLYHOOK_ENCRYPTION_KEY is not set.\n`);
      return environment;
    }
    const encryption = await runtime.encryption();
    const stored = rows.flatMap((row): SigningSecret[] => {
      try {
        const { key_id: keyId, ciphertext } = row;
        const value = encryption.decrypt({ keyId, ciphertext });
        return [{ id: row.id, value, notBefore: row.not_before, notAfter: row.not_after }];
      } catch (err) {
        context.stderr.write(`tallyhook: ${row.id} is left out: ${(err as Error).message}\n`);
        return [];
      }
    });
    return [...stored, ...environment];
  });
}

function secretsOf(text: string): SigningSecret[] {
  const values = text.split(/\r?\n/).filter((line) => line !== "");
  return values.map((value) => asSecret("file", value));
}

function asSecret(source: string, value: string): SigningSecret {
  return { id: `${source}:${secretFingerprint(value)}`, value, notBefore: null, notAfter: null };
}

/**
 * Reads the headers of a captured request as alternating names and values. Takes the forms that tools write: `Name:
 * value` lines (a request line and the marks of `curl -v` are skipped), a JSON object of headers, or a JSON list like
 * `rawHeaders`. Throws `UsageError` for any other form.
 */
export function parseCapturedHeaders(text: string): string[] {
  const trimmed = text.trim();
  return trimmed.startsWith("{") || trimmed.startsWith("[")
    ? fromJson(trimmed)
    : trimmed.split(/\r?\n/).flatMap(fromLine);
}

function fromLine(line: string): string[] {
  const header = line.replace(/^[<>*] ?/, "");
  const colon = header.indexOf(":");
  const name = header.slice(0, Math.max(colon, 0)).trim();
  // A request line, an empty line, or a tool's status line.
  if (name === "" || /\s/.test(name)) return [];
  return [name, header.slice(colon + 1).trim()];
}

function fromJson(text: string): string[] {
  let headers: unknown;
  try {
    headers = JSON.parse(text);
  } catch {
    throw new UsageError("The file of --headers begins like JSON, but is not valid JSON.");
  }
  if (Array.isArray(headers)) {
    // [name, value, …], or [[name, value], …]
    const flat: unknown[] = headers.flat();
    if (flat.length % 2 === 0 && flat.every((item) => typeof item === "string")) return flat;
    throw new UsageError("A JSON list of headers must hold names and values in turn, all text.");
  }
  return Object.entries(headers as Record<string, unknown>).flatMap(([name, value]) => {
    const values: unknown[] = Array.isArray(value) ? value : [value];
    return values.flatMap((each) => [name, String(each)]);
  });
}
