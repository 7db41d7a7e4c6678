import type { Command } from "commander";
import { wallClock } from "../platform/clock.ts";
import { secretFingerprint } from "../receiver/secrets-environment.ts";
import { listSecretRows } from "../receiver/secrets-store.ts";
import { explainSignature } from "../service/signature/explain.ts";
import type { SignatureExplanation } from "../service/signature/explain.ts";
import type { SigningSecret } from "../service/signature/scheme.ts";
import { migratedDatabase } from "../runtime.ts";
import type { CliContext } from "./context.ts";
import { readInputFile } from "../platform/input-file.ts";
import { parseCapturedHeaders } from "./signature-capture.ts";
import { parseInstant } from "./instant.ts";
import { counted } from "../platform/counted.ts";

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
    .description("find out why a webhook does or does not verify")
    .command("explain")
    .description("why a captured request does or does not verify")
    .requiredOption("--headers <file>", "file with its headers: lines of Name: value, or JSON")
    .requiredOption("--body <file>", "file with its body, byte for byte as it came")
    .option("--secret-file <file>", "secrets to try, one a line, instead of those configured")
    .option(
      "--at <time>",
      "check it at this time instead of now (ISO 8601 with offset)",
      parseInstant,
    )
    .option("--json", "print JSON")
    .action((options: ExplainOptions) => explain(context, options));
}

async function explain(context: CliContext, options: ExplainOptions): Promise<void> {
  const { config } = context.loaded();
  const rawHeaders = parseCapturedHeaders(
    (await readInputFile(options.headers)).toString("latin1"),
  );
  const body = await readInputFile(options.body);
  const secrets =
    options.secretFile === undefined
      ? await configuredSecrets(context)
      : secretsOf((await readInputFile(options.secretFile)).toString("utf8"));
  const { scheme, toleranceSeconds } = config.signature;
  const now = options.at ?? wallClock.now();
  const request = { rawHeaders, body, secrets, now, toleranceSeconds };
  const explanation = explainSignature(request, scheme);
  const text =
    options.json === true
      ? `${JSON.stringify({ scheme, secretsTried: secrets.map(({ id }) => id), ...explanation })}\n`
      : inWords(explanation);
  context.stdout.write(text);
}

function inWords({ verification, ageSeconds, advice }: SignatureExplanation): string {
  const verdict = verification.ok ? "accepted" : `refused (${verification.reason})`;
  const age =
    ageSeconds === null ? "it does not say when" : `${ageSeconds} s before the time of the check`;
  return [
    `The receiver's verdict: ${verdict}`,
    `Signed: ${age}`,
    "",
    ...advice.map((each) => `- ${each}`),
    "",
  ].join("\n");
}

/** Those of the environment and of the database, whether live or not. */
async function configuredSecrets(context: CliContext): Promise<SigningSecret[]> {
  return context.withRuntime(
    "signature",
    async (runtime) => {
      const environment = runtime.secrets.webhookSecrets.map((value) => asSecret("env", value));
      const rows = await listSecretRows(await migratedDatabase(runtime));
      if (rows.length === 0) return environment;
      if (runtime.config.encryptionKey === "none") {
        const many = counted(rows.length, "stored secret is", "stored secrets are");
        context.stderr.write(`tallyhook: ${many} left out: TALLYHOOK_ENCRYPTION_KEY is not set\n`);
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
    },
    { logLevel: "warn" },
  );
}

function secretsOf(text: string): SigningSecret[] {
  const values = text.split(/\r?\n/).filter((line) => line !== "");
  return values.map((value) => asSecret("file", value));
}

function asSecret(source: string, value: string): SigningSecret {
  return { id: `${source}:${secretFingerprint(value)}`, value, notBefore: null, notAfter: null };
}
