import { lateBackupHours, readBackups, unsavedMs } from "../../../core/mirror/backups.ts";
import { tallyhook } from "../../../platform/command-line.ts";
import { counted, durationText, someOf } from "../../../platform/readable-text.ts";
import type { Runtime } from "../../../app/runtime.ts";
import { type CheckResult, failed, ok, skipped, warning } from "../../../app/check-result.ts";
import { freePercent, freeText, readDiskSpace } from "../../../platform/disk-space.ts";
import { type Receivers, readReceivers } from "../../../core/receiver/heartbeats.ts";
import type { Encryption } from "../../../platform/encryption.ts";
import { type SecretRow, listCurrentSecretRows } from "../../../core/receiver/secrets-store.ts";
import { isUsableRow } from "../../../core/receiver/secrets-overview.ts";

/** Checks the age of the last verified backup, where any was ever begun. */
export async function checkBackups(runtime: Pick<Runtime, "db">): Promise<CheckResult> {
  const name = "backup";
  const backups = await readBackups(await runtime.db());
  if (backups === null) {
    return skipped(name, `"${tallyhook("backup")}" was never run on this database`);
  }
  const age = durationText(unsavedMs(backups));
  if (unsavedMs(backups) <= lateBackupHours * 3_600_000 && backups.takenAt !== null) {
    return ok(name, `the last verified one is ${age} old`);
  }
  return failed(
    name,
    backups.takenAt === null ? `none has succeeded since the first was begun ${age} ago` : `no verified one for ${age}`,
    `run "${tallyhook("backup DIRECTORY")}", which says what keeps it from being made (docs/backup.md)`,
  );
}

const limits = { warning: 10, failed: 2 };

/** Checks the disk of the embedded database. Nothing here can see the disk of another one. */
export async function checkDisk({ config }: Pick<Runtime, "config">): Promise<CheckResult[]> {
  const name = "disk";
  if (config.database !== "embedded") return [];
  const space = await readDiskSpace(config.dataDir);
  if (space === null) return [skipped(name, "the system does not report how full it is")];
  const free = freePercent(space);
  const detail = `${freeText(space)} free at ${space.folder}`;
  const remedy = "remove files that are not the database's, or make the disk larger";
  if (free < limits.failed) return [failed(name, detail, remedy)];
  return [free < limits.warning ? warning(name, detail, remedy) : ok(name, detail)];
}

/** Checks that a receiver takes webhooks, and reports when the last one came. */
export async function checkReceivers(runtime: Pick<Runtime, "db">): Promise<CheckResult> {
  return judgeReceivers(await readReceivers(await runtime.db()));
}

function judgeReceivers(heard: Receivers): CheckResult {
  const name = "receiver";
  const { presence } = heard;
  const last = lastText(heard);
  const start = `start one: "${tallyhook("receiver")}" (or "${tallyhook("start")}" for everything at once)`;
  if (presence === null) {
    return warning(name, `none has ever run here, so nothing takes webhooks; ${last}`, start);
  }
  const { ready, unready, missing } = presence;
  if (ready === 0 && unready > 0) {
    return failed(
      name,
      `${counted(unready, "receiver runs and cannot store events", "receivers run and cannot store events")}; ${last}`,
      "ask its /readyz what it lacks, and read its log",
    );
  }
  if (ready === 0) {
    const silent = durationText(heard.now.getTime() - presence.lastReadyAt.getTime());
    return failed(
      name,
      `no receiver runs, so the service gets no answer; the last one was heard ${silent} ago; ${last}`,
      start,
    );
  }
  const run = counted(ready, "receiver runs", "receivers run");
  const troubles = [
    ...(unready > 0 ? [`${unready} cannot store events`] : []),
    ...(missing > 0 ? [counted(missing, "missed its heartbeat", "missed their heartbeats")] : []),
  ];
  return troubles.length === 0
    ? ok(name, `${run}; ${last}`)
    : warning(
        name,
        `${run}; ${troubles.join("; ")}; ${last}`,
        "read its log; if it was killed on purpose, this warning ends after an hour",
      );
}

function lastText({ lastAnswerAt, lastWebhookAt, now }: Receivers): string {
  const since = (at: Date | null) => (at === null ? "never" : `${durationText(now.getTime() - at.getTime())} ago`);
  return `last webhook stored: ${since(lastWebhookAt)}, last one answered: ${since(lastAnswerAt)}`;
}

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
