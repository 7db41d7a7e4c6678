import type { Knex } from "knex";
import type { Clock } from "../platform/clock.ts";
import type { Encryption } from "../platform/encryption.ts";
import type { Log } from "../platform/log.ts";
import type { SignatureSchemeName, SigningSecret } from "../service/signature/scheme.ts";
import { secretProblem } from "../service/signature/secret-problem.ts";
import { listUnendedSecretRows, recordSecretUse } from "./secrets-store.ts";
import type { SecretRow } from "./secrets-store.ts";

/** The signing secrets of a running receiver. */
export interface LiveSecrets {
  /** Those of the database first, then the environment's. The same objects for as long as they are the same. */
  current(): readonly SigningSecret[];
  /**
   * Reads them again, at most once a second and waiting a second at most: for the moment before a 401, so
   * that a rotation costs nothing. Never rejects; without the database the last known ones stay.
   */
  refresh(): Promise<void>;
  /** Notes that a secret verified a request; written at most once a minute. Costs a look-up. */
  markUsed(secretId: string): void;
  /** What is wrong with stored secrets, for readiness and people. Holds no secret. */
  problems(): readonly string[];
  close(): Promise<void>;
}

export interface LiveSecretsDependencies {
  db: Knex;
  /** Null when no key is configured: stored secrets cannot be read then, which is a problem, not an error. */
  encryption: Pick<Encryption, "decrypt"> | null;
  clock: Clock;
  log: Log;
}

export interface LiveSecretsOptions {
  scheme: SignatureSchemeName;
  /** See `environmentSecrets`. */
  environment: readonly SigningSecret[];
  reloadEveryMs?: number;
  reloadAtMostEveryMs?: number;
  refreshWaitMs?: number;
  recordUseEveryMs?: number;
}

/**
 * Reads the secrets and goes on reading them every 2 s, so that a change made from the command line takes
 * effect within 5 s. Starts without the database too, with the environment's secrets alone. Close it.
 */
export async function startLiveSecrets(
  dependencies: LiveSecretsDependencies,
  options: LiveSecretsOptions,
): Promise<LiveSecrets> {
  const { db, clock, log } = dependencies;
  const { environment, reloadEveryMs = 2_000, reloadAtMostEveryMs = 1_000 } = options;
  const { refreshWaitMs = 1_000, recordUseEveryMs = 60_000 } = options;

  let known = new Map<string, KnownSecret>();
  let live: readonly SigningSecret[] = [...environment];
  let problems: readonly string[] = [];
  let isStale = false;
  let loading: Promise<void> | null = null;
  let lastStartMs = Number.NEGATIVE_INFINITY;
  let timer: NodeJS.Timeout | undefined;
  let isClosed = false;
  const recordedMs = new Map<string, number>();
  const writing = new Set<Promise<void>>();

  function reload(): Promise<void> {
    clearTimeout(timer);
    lastStartMs = clock.now().getTime();
    loading ??= load().finally(() => {
      loading = null;
      if (!isClosed) timer = setTimeout(() => void reload(), reloadEveryMs).unref();
    });
    return loading;
  }

  async function load(): Promise<void> {
    try {
      const rows = await listUnendedSecretRows(db, clock.now());
      known = new Map(
        rows.map((row) => [row.id, openSecret(dependencies, options.scheme, row, known)]),
      );
      take([...known.values()]);
      if (isStale) log.info("the signing secrets can be read again");
      isStale = false;
    } catch (err) {
      if (!isStale)
        log.warn({ err }, "the signing secrets cannot be read; the last known ones are used");
      isStale = true;
    }
  }

  function take(stored: readonly KnownSecret[]): void {
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
      // The next minute tries again: that costs less than trying at every request of an outage.
      log.debug({ err, secretId: id }, "the use of a signing secret was not noted");
    }
  }

  await reload();
  return {
    current: () => live,
    async refresh() {
      const sinceMs = Math.abs(clock.now().getTime() - lastStartMs);
      if (isClosed || (loading === null && sinceMs < reloadAtMostEveryMs)) return;
      await atMost(refreshWaitMs, loading ?? reload());
    },
    markUsed(secretId) {
      if (!known.has(secretId)) return;
      const now = clock.now();
      const sinceMs = Math.abs(
        now.getTime() - (recordedMs.get(secretId) ?? Number.NEGATIVE_INFINITY),
      );
      if (isClosed || sinceMs < recordUseEveryMs) return;
      recordedMs.set(secretId, now.getTime());
      const write = record(secretId, now).finally(() => writing.delete(write));
      writing.add(write);
    },
    problems: () => problems,
    async close() {
      isClosed = true;
      clearTimeout(timer);
      await Promise.all([loading, ...writing]);
    },
  };
}

interface KnownSecret {
  row: SecretRow;
  secret: SigningSecret | null;
  problem: string | null;
}

/** A row as a secret; the object of last time when nothing changed, so that its derived keys are kept. */
function openSecret(
  { encryption }: LiveSecretsDependencies,
  scheme: SignatureSchemeName,
  row: SecretRow,
  known: ReadonlyMap<string, KnownSecret>,
): KnownSecret {
  const before = known.get(row.id);
  if (before !== undefined && isSameRow(before.row, row)) return before;
  const unusable = (problem: string): KnownSecret => ({
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
      `cannot be decrypted with TALLYHOOK_ENCRYPTION_KEY (it was stored under the key ${row.key_id}); set the key of that time, or add the secret again`,
    );
  }
  const problem = secretProblem(scheme, value);
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

/** Waits for work that never rejects, but not longer than a time. */
async function atMost(ms: number, work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const timeIsUp = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([work, timeIsUp]);
  clearTimeout(timer);
}
