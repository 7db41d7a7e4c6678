import { setTimeout as sleep } from "node:timers/promises";
import type { Knex } from "knex";
import { type SignatureSchemeName, signatureScheme } from "../contract/signature/signature-scheme.ts";
import { type SigningSecret, secretProblem } from "../contract/signature/verification.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Encryption } from "../../platform/encryption.ts";
import type { Log } from "../../platform/log.ts";
import { type SecretRow, listCurrentSecretRows, recordSecretUse } from "./secrets-store.ts";

/** The signing secrets of a running receiver. */
export interface LiveSecrets {
  /** The database's secrets, then the environment's. Returns the same objects until they change. */
  current(): readonly SigningSecret[];
  /**
   * Reads the secrets again before a 401 is sent, so that a rotation loses no events. Resolves with whether `current`
   * now holds every secret that was stored before the call. Such reads run at most once a second: an earlier caller
   * waits for the next read together with all others, 2 s at most. Resolves with false when the read failed or was
   * late, so the result is unknown. Without an encryption key no stored secret can verify anything, so nothing is read.
   * Never rejects.
   */
  refresh(): Promise<boolean>;
  /** Notes that a secret verified a request. Written at most once a minute. Costs one lookup. */
  markUsed(secretId: string): void;
  /** The present problems of stored secrets, for readiness and operators. Contains no secret. */
  problems(): readonly string[];
  close(): Promise<void>;
}

export interface LiveSecretsDependencies extends Pick<DecryptionTools, "encryption"> {
  db: Knex;
  clock: Clock;
  log: Log;
}

export interface LiveSecretsOptions extends Pick<DecryptionTools, "scheme"> {
  /** See `environmentSecrets`. */
  environment: readonly SigningSecret[];
  reloadEveryMs?: number;
  reloadAtMostEveryMs?: number;
  refreshWaitMs?: number;
}

const recordUseEveryMs = 60_000;

/**
 * Reads the secrets now and every 2 s, so that a change from the command line takes effect within 5 s. Starts without
 * the database too, with the environment's secrets alone. The caller must close it.
 */
export async function startLiveSecrets(
  dependencies: LiveSecretsDependencies,
  options: LiveSecretsOptions,
): Promise<LiveSecrets> {
  const { db, encryption, clock, log } = dependencies;
  const { scheme, environment, reloadEveryMs = 2_000, reloadAtMostEveryMs = 1_000 } = options;
  const { refreshWaitMs = 2_000 } = options;

  let known = new Map<string, LoadedSecret>();
  let live: readonly SigningSecret[] = [...environment];
  let problems: readonly string[] = [];
  let isOutdated = false;
  let loading: Promise<boolean> | null = null;
  /** The next read: it has not begun, so it will see everything stored before its callers asked for it. */
  let nextRead: Promise<boolean> | null = null;
  let mayReadAgain: Promise<unknown> = Promise.resolve();
  let timer: NodeJS.Timeout | undefined;
  let isClosed = false;
  const recordedMs = new Map<string, number>();
  const writing = new Set<Promise<void>>();

  /** Resolves with whether the read succeeded. No other read may be in progress. */
  function reload(): Promise<boolean> {
    clearTimeout(timer);
    mayReadAgain = sleep(reloadAtMostEveryMs, undefined, { ref: false });
    loading = load().finally(() => {
      loading = null;
      if (!isClosed) timer = setTimeout(reloadUnlessAsked, reloadEveryMs).unref();
    });
    return loading;
  }

  /** Skips the periodic read when a requested one is pending: it would be the second within a second. */
  function reloadUnlessAsked(): void {
    if (nextRead === null) void reload();
  }

  /** Waits for a read in progress and starts another: the first may have begun too early to see the newest secrets. */
  async function readAfterNow(): Promise<boolean> {
    await Promise.all([loading, mayReadAgain]);
    nextRead = null;
    return !isClosed && (await reload());
  }

  async function load(): Promise<boolean> {
    try {
      const rows = await listCurrentSecretRows(db, clock.now());
      known = new Map(rows.map((row) => [row.id, openSecret({ encryption, scheme }, row, known)]));
      adopt([...known.values()]);
      if (isOutdated) log.info("the signing secrets can be read again");
      isOutdated = false;
    } catch (err) {
      if (!isOutdated) log.warn({ err }, "the signing secrets cannot be read; the last known ones are used");
      isOutdated = true;
    }
    return !isOutdated;
  }

  function adopt(stored: readonly LoadedSecret[]): void {
    const secrets = stored.flatMap(({ secret }) => (secret === null ? [] : [secret]));
    live = [...secrets, ...environment];
    const found = stored.flatMap(({ problem }) => (problem === null ? [] : [problem]));
    for (const problem of found)
      if (!problems.includes(problem)) log.error({ problem }, "a signing secret cannot be used");
    problems = found;
  }

  async function record(id: string, at: Date): Promise<void> {
    try {
      await recordSecretUse(db, id, at);
    } catch (err) {
      // Retried in a minute, since a try with every request would make an outage worse.
      log.debug({ err, secretId: id }, "the use of a signing secret was not recorded");
    }
  }

  await reload();
  return {
    current: () => live,
    async refresh() {
      if (encryption === null) return true;
      nextRead ??= readAfterNow();
      return succeedsInTime(nextRead, refreshWaitMs);
    },
    markUsed(secretId) {
      if (!known.has(secretId)) return;
      const now = clock.now();
      const sinceMs = Math.abs(now.getTime() - (recordedMs.get(secretId) ?? Number.NEGATIVE_INFINITY));
      if (isClosed || sinceMs < recordUseEveryMs) return;
      recordedMs.set(secretId, now.getTime());
      const write = record(secretId, now).finally(() => writing.delete(write));
      writing.add(write);
    },
    problems: () => (isOutdated && encryption !== null ? [...problems, unread] : problems),
    async close() {
      isClosed = true;
      clearTimeout(timer);
      await Promise.all([loading, ...writing]);
    },
  };
}

const unread =
  "The signing secrets in the database cannot be read. Check that PostgreSQL is up and that the schema is migrated.";

/** Resolves with false on time-out, too. `work` must never reject. */
async function succeedsInTime(work: Promise<boolean>, limitMs: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const timeIsUp = new Promise<boolean>((resolve) => {
    timer = setTimeout(resolve, limitMs, false);
  });
  const succeeded = await Promise.race([work, timeIsUp]);
  clearTimeout(timer);
  return succeeded;
}

/** A stored secret with its usable form, or with null and the reason why it is unusable. Contains the secret. */
export interface LoadedSecret {
  row: SecretRow;
  secret: SigningSecret | null;
  problem: string | null;
}

export interface DecryptionTools {
  /** Null when no key is configured. Stored secrets are then unreadable, which is a problem and not an error. */
  encryption: Pick<Encryption, "decrypt"> | null;
  scheme: SignatureSchemeName;
}

/** Decrypts a row. Returns the previous object when nothing changed, so that its derived keys are kept. */
function openSecret(
  { encryption, scheme }: DecryptionTools,
  row: SecretRow,
  known: ReadonlyMap<string, LoadedSecret>,
): LoadedSecret {
  const before = known.get(row.id);
  if (before !== undefined && isSameRow(before.row, row)) return before;
  const unusable = (problem: string): LoadedSecret => ({
    row,
    secret: null,
    problem: `The signing secret ${row.id} ${problem}.`,
  });
  if (encryption === null) {
    return unusable("cannot be decrypted: TALLYHOOK_ENCRYPTION_KEY is not set");
  }
  let value: string;
  try {
    value = encryption.decrypt({ keyId: row.key_id, ciphertext: row.ciphertext });
  } catch {
    return unusable(
      `cannot be decrypted with TALLYHOOK_ENCRYPTION_KEY (it was encrypted with the key ${row.key_id}); set that key, or add the secret again`,
    );
  }
  const problem = secretProblem(signatureScheme(scheme), value);
  if (problem !== null) return unusable(problem);
  const secret = { id: row.id, value, notBefore: row.not_before, notAfter: row.not_after };
  return { row, secret: Object.freeze(secret), problem: null };
}

function isSameRow(a: SecretRow, b: SecretRow): boolean {
  return (
    a.ciphertext.equals(b.ciphertext) &&
    a.key_id === b.key_id &&
    a.not_before?.getTime() === b.not_before?.getTime() &&
    a.not_after?.getTime() === b.not_after?.getTime()
  );
}
