import { tallyhook } from "../../../platform/command-line.ts";
import { counted } from "../../../platform/readable-text.ts";
import type { Encryption } from "../../../platform/encryption.ts";
import { someOf } from "../../../platform/readable-text.ts";
import { type SecretRow, listCurrentSecretRows } from "../../../core/receiver/secrets-store.ts";
import { isUsableRow } from "../../../core/receiver/secrets-overview.ts";
import type { Runtime } from "../../../app/runtime.ts";
import { type CheckResult, failed, ok } from "../../../app/check-result.ts";

const check = "signing secrets";

/** Checks that there is a secret to verify with, and that the current key decrypts each stored one. */
export async function checkSecrets(runtime: Runtime): Promise<CheckResult> {
  const { config, secrets } = runtime;
  const rows = await listCurrentSecretRows(await runtime.db(), runtime.wallClock.now());
  const fromEnvironment = secrets.webhookSecrets.length;
  const detail = `${fromEnvironment} from the environment, ${rows.length} in the database`;
  if (rows.length > 0) {
    const encryption = await runtime.encryption();
    const closed = rows.filter((row) => !opens(encryption, row));
    if (closed.length > 0) return keyIsWrong(runtime, rows, closed);
    const unfit = rows.filter((row) => !isUsableRow(encryption, config.signature.scheme, row));
    if (unfit.length > 0) {
      return failed(
        check,
        `${listed(unfit)} cannot be used with SVC_SIGNATURE_SCHEME=${config.signature.scheme}`,
        `set the scheme that these secrets are for, or add one for this scheme ("${tallyhook("secrets add")}")`,
      );
    }
  }
  if (fromEnvironment + rows.length > 0) return ok(check, detail);
  return config.service.kind === "sandbox"
    ? ok(check, `${detail}; "${tallyhook("start")}" makes one for its sandbox`)
    : failed(check, detail, `set SVC_WEBHOOK_SECRETS or run "${tallyhook("secrets add")}"`);
}

function keyIsWrong(
  { config }: Pick<Runtime, "config">,
  rows: readonly SecretRow[],
  closed: readonly SecretRow[],
): CheckResult {
  const which =
    config.encryptionKey === "local" ? `the key in ${config.dataDir}/encryption-key` : "TALLYHOOK_ENCRYPTION_KEY";
  const of = counted(rows.length, "stored secret");
  return failed(
    check,
    `${which} does not decrypt ${closed.length} of ${of}: ${listed(closed)}. What is signed with them is refused`,
    "bring back the key that they were stored with (or name it in TALLYHOOK_PREVIOUS_ENCRYPTION_KEYS); if it is " +
      `lost, store the secrets again: "${tallyhook("secrets add")}"`,
  );
}

const listed = (rows: readonly SecretRow[]): string =>
  someOf(rows.map(({ id, key_id: keyId }) => `${id} (key ${keyId})`));

function opens(encryption: Encryption, { key_id: keyId, ciphertext }: SecretRow): boolean {
  try {
    encryption.decrypt({ keyId, ciphertext });
    return true;
  } catch {
    return false;
  }
}
