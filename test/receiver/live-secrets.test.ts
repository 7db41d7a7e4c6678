import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { signatureScheme } from "../../src/core/contract/signature/signature-scheme.ts";
import { wallClock } from "../../src/platform/clock.ts";
import { createEncryption } from "../../src/platform/encryption.ts";
import { createLog } from "../../src/platform/log.ts";
import { createDatabase } from "../../src/platform/postgres/pool.ts";
import { testPooling } from "../support/pooling.ts";
import {
  type LiveSecrets,
  type LiveSecretsDependencies,
  type LiveSecretsOptions,
  startLiveSecrets,
} from "../../src/core/receiver/live-secrets.ts";
import { addSecret, environmentSecrets, listSecretRows, retireSecret } from "../../src/core/receiver/secrets-store.ts";
import { useTestDatabase } from "../support/use-database.ts";

const encryption = createEncryption({ current: "ab".repeat(32) });
const values = {
  first: "whsec_the-first-secret-of-all",
  second: "whsec_the-second-secret-of-all",
  third: "whsec_the-third-secret-of-all",
};

const database = useTestDatabase();
const running: LiveSecrets[] = [];
let lines: string[] = [];

function dependencies(parts: Partial<LiveSecretsDependencies> = {}): LiveSecretsDependencies {
  const destination = { write: (line: string) => void lines.push(line) };
  const log = createLog({ level: "debug", name: "test", destination });
  return { db: database.db, encryption, clock: wallClock, log, ...parts };
}

async function start(
  options: Partial<LiveSecretsOptions> = {},
  parts: Partial<LiveSecretsDependencies> = {},
): Promise<LiveSecrets> {
  const secrets = await startLiveSecrets(dependencies(parts), {
    scheme: "svc",
    environment: [],
    reloadEveryMs: 3_600_000,
    reloadAtMostEveryMs: 0,
    ...options,
  });
  running.push(secrets);
  return secrets;
}

const add = (value: string, window: { notBefore?: Date; notAfter?: Date } = {}) =>
  addSecret({ db: database.db, encryption }, "svc", { value, ...window });

const liveValues = (secrets: LiveSecrets): string[] => secrets.current().map(({ value }) => value);

/** Reads of the secrets that wait for a lock. */
async function waitingReads(): Promise<number> {
  const { rows } = await database.db.raw<{ rows: unknown[] }>(
    `select 1 from pg_locks
     where database = (select oid from pg_database where datname = current_database())
       and relation = 'receiver.secrets'::regclass and not granted`,
  );
  return rows.length;
}

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await sleep(10);
}

beforeEach(async () => {
  lines = [];
  await database.db("receiver.secrets").delete();
});
afterEach(async () => {
  await Promise.all(running.splice(0).map((secrets) => secrets.close()));
});

describe("the secrets of a running receiver", () => {
  it("are those of the database, newest first, and then the environment's", async () => {
    await add(values.first);
    await sleep(5);
    await add(values.second);
    const secrets = await start({ environment: environmentSecrets("svc", [values.third]) });
    expect(liveValues(secrets)).toEqual([values.second, values.first, values.third]);
  });

  it("are stored encrypted", async () => {
    await add(values.first);
    const [row] = await listSecretRows(database.db);
    expect(row?.ciphertext.includes(values.first)).toBe(false);
    expect(row?.key_id).toBe(encryption.keyId);
  });

  it("change within 5 s of a change in the database, on their own", async () => {
    const secrets = await startLiveSecrets(dependencies(), { scheme: "svc", environment: [] });
    running.push(secrets);
    const { id } = await add(values.first);
    const added = Date.now();
    await until(() => secrets.current().length === 1);
    const retired = Date.now();
    await retireSecret(database.db, id, { now: new Date(), at: new Date() });
    await until(() => secrets.current().length === 0);
    expect(retired - added).toBeLessThan(5_000);
    expect(Date.now() - retired).toBeLessThan(5_000);
  });

  it("change at once when they are asked to before a refusal", async () => {
    const secrets = await start();
    await add(values.first);
    expect(liveValues(secrets)).toEqual([]);
    await secrets.refresh();
    expect(liveValues(secrets)).toEqual([values.first]);
  });

  it("are read again for every refusal, but at most once a second, however many there are", async () => {
    const readAtMs: number[] = [];
    const note = (): void => void readAtMs.push(performance.now());
    const secrets = await start({ reloadAtMostEveryMs: 300 });
    database.db.on("query", note);
    const refuseMany = () => Promise.all(Array.from({ length: 50 }, () => secrets.refresh()));
    const startedMs = performance.now();
    const outcomes = [await refuseMany(), await refuseMany(), await refuseMany()];
    database.db.off("query", note);
    expect(new Set(outcomes.flat())).toEqual(new Set([true]));
    expect(readAtMs).toHaveLength(3);
    // Timers count from the start of their turn of the event loop.
    expect((readAtMs[2] ?? 0) - startedMs).toBeGreaterThan(3 * 300 - 100);
  });

  it("that were stored while a read was under way are seen by the next one", async () => {
    const secrets = await start();
    const lock = await database.db.transaction();
    await lock.raw("lock table receiver.secrets in access exclusive mode");
    const early = secrets.refresh();
    await until(async () => (await waitingReads()) === 1);
    const late = secrets.refresh();
    await addSecret({ db: lock, encryption }, "svc", { value: values.first });
    await lock.commit();
    expect(await Promise.all([early, late])).toEqual([true, true]);
    expect(liveValues(secrets)).toEqual([values.first]);
  });

  it("need no reading where no key is configured: a stored one could verify nothing", async () => {
    const secrets = await start({}, { encryption: null });
    let reads = 0;
    const count = (): void => void (reads += 1);
    database.db.on("query", count);
    expect(await secrets.refresh()).toBe(true);
    database.db.off("query", count);
    expect(reads).toBe(0);
  });

  it("stay the same objects while they do not change", async () => {
    await add(values.first);
    const secrets = await start();
    const [before] = secrets.current();
    await secrets.refresh();
    expect(secrets.current()[0]).toBe(before);
  });

  it("verify both during a rotation, and the old one not a moment longer", async () => {
    const body = Buffer.from("{}");
    const ends = new Date(Date.now() + 3_600_000);
    await add(values.first, { notAfter: ends });
    await add(values.second);
    const secrets = await start();
    const verify = (value: string, now: Date): boolean => {
      const headers = signatureScheme("svc").sign({
        body,
        secrets: [value],
        at: now,
        messageId: "",
      });
      return signatureScheme("svc").verify({
        rawHeaders: Object.entries(headers).flat(),
        body,
        secrets: secrets.current(),
        now,
        toleranceSeconds: 300,
      }).ok;
    };
    const before = new Date(ends.getTime() - 1);
    expect([verify(values.first, before), verify(values.second, before)]).toEqual([true, true]);
    expect([verify(values.first, ends), verify(values.second, ends)]).toEqual([false, true]);
  });

  it("leave out those that have ended, and hold those that begin later", async () => {
    await add(values.first, { notAfter: new Date(Date.now() - 1_000) });
    await add(values.second, { notBefore: new Date(Date.now() + 60_000) });
    expect(liveValues(await start())).toEqual([values.second]);
  });
});

describe("a stored secret that cannot be used", () => {
  it("is reported and does not touch the others, when another key encrypted it", async () => {
    const other = createEncryption({ current: "cd".repeat(32) });
    await addSecret({ db: database.db, encryption: other }, "svc", { value: values.first });
    await add(values.second);
    const secrets = await start();
    expect(liveValues(secrets)).toEqual([values.second]);
    expect(secrets.problems()).toHaveLength(1);
    expect(secrets.problems()[0]).toContain(other.keyId);
    expect(secrets.problems()[0]).toContain("TALLYHOOK_ENCRYPTION_KEY");
    expect(lines.join("")).not.toContain(values.first);
  });

  it("is reported once, not at every reload", async () => {
    const other = createEncryption({ current: "cd".repeat(32) });
    await addSecret({ db: database.db, encryption: other }, "svc", { value: values.first });
    const secrets = await start();
    await secrets.refresh();
    await secrets.refresh();
    expect(lines.filter((line) => line.includes("cannot be used"))).toHaveLength(1);
  });

  it("is reported when its bytes were altered", async () => {
    const { id } = await add(values.first);
    await database
      .db("receiver.secrets")
      .where({ id })
      .update({ ciphertext: Buffer.from("rot") });
    const secrets = await start();
    expect(secrets.current()).toEqual([]);
    expect(secrets.problems()[0]).toContain(id);
  });

  it("is reported when no key is configured", async () => {
    await add(values.first);
    const secrets = await start({}, { encryption: null });
    expect(secrets.current()).toEqual([]);
    expect(secrets.problems()[0]).toContain("TALLYHOOK_ENCRYPTION_KEY is not set");
  });

  it("is reported when the scheme cannot use it", async () => {
    await add(values.first);
    const secrets = await start({ scheme: "standard-webhooks" });
    expect(secrets.problems()[0]).toContain("base64");
  });

  it("is no longer reported once it is gone", async () => {
    const { id } = await add(values.first);
    const secrets = await start({ scheme: "standard-webhooks" });
    await retireSecret(database.db, id, { now: new Date(), at: new Date() });
    await secrets.refresh();
    expect(secrets.problems()).toEqual([]);
  });
});

describe("without the database", () => {
  it("the last known secrets go on, and new ones come in when it is back", async () => {
    await add(values.first);
    const db = createDatabase({
      url: database.url,
      pooling: testPooling(),
      poolMax: 1,
      applicationName: "outage",
    });
    const secrets = await start({}, { db });
    await database.db.raw("alter table receiver.secrets rename to hidden");
    try {
      await add(values.second).catch(() => undefined);
      expect(await secrets.refresh()).toBe(false);
      expect(liveValues(secrets)).toEqual([values.first]);
      expect(lines.filter((line) => line.includes("cannot be read"))).toHaveLength(1);
      expect(await secrets.refresh()).toBe(false);
      expect(lines.filter((line) => line.includes("cannot be read"))).toHaveLength(1);
      expect(secrets.problems()).toEqual([
        "The signing secrets in the database cannot be read. Check that PostgreSQL is up and that the schema is migrated.",
      ]);
    } finally {
      await database.db.raw("alter table receiver.hidden rename to secrets");
    }
    await add(values.second);
    await secrets.refresh();
    expect(liveValues(secrets)).toHaveLength(2);
    expect(lines.join("")).toContain("can be read again");
    expect(secrets.problems()).toEqual([]);
    await secrets.close();
    await db.destroy();
  });

  it("it starts with the environment's", async () => {
    const db = createDatabase({
      url: "postgres://nobody@127.0.0.1:1/none",
      poolMax: 1,
      applicationName: "nowhere",
    });
    const secrets = await start({ environment: environmentSecrets("svc", [values.third]) }, { db });
    expect(liveValues(secrets)).toEqual([values.third]);
    await secrets.close();
    await db.destroy();
  });

  it("a refusal waits a moment only", async () => {
    await database.db.transaction(async (lock) => {
      const secrets = await start({ refreshWaitMs: 50 });
      await lock.raw("lock table receiver.secrets in access exclusive mode");
      const before = Date.now();
      expect([await secrets.refresh(), await secrets.refresh()]).toEqual([false, false]);
      expect(Date.now() - before).toBeLessThan(3_000);
    });
  });
});

describe("the last use of a secret", () => {
  const lastUsed = async (id: string): Promise<Date | null | undefined> => {
    const rows = await listSecretRows(database.db);
    return rows.find((row) => row.id === id)?.last_used_at;
  };

  it("is noted at most once in its interval", async () => {
    const { id } = await add(values.first);
    let now = new Date("2026-03-01T12:00:00Z");
    const secrets = await start({}, { clock: { now: () => now } });
    for (let request = 0; request < 100; request += 1) secrets.markUsed(id);
    await until(async () => (await lastUsed(id)) !== null);
    now = new Date("2026-03-01T12:00:59Z");
    secrets.markUsed(id);
    await sleep(50);
    expect(await lastUsed(id)).toEqual(new Date("2026-03-01T12:00:00Z"));
    now = new Date("2026-03-01T12:01:00Z");
    secrets.markUsed(id);
    await until(async () => (await lastUsed(id))?.getTime() === now.getTime());
  });

  it("never moves back, whichever receiver writes last", async () => {
    const { id } = await add(values.first);
    const late = new Date("2026-03-01T12:00:00Z");
    await database.db("receiver.secrets").where({ id }).update({ last_used_at: late });
    const secrets = await start({}, { clock: { now: () => new Date("2026-03-01T11:00:00Z") } });
    secrets.markUsed(id);
    await secrets.close();
    expect(await lastUsed(id)).toEqual(late);
  });

  it("is written before the secrets are closed", async () => {
    const { id } = await add(values.first);
    const secrets = await start();
    secrets.markUsed(id);
    await secrets.close();
    expect(await lastUsed(id)).not.toBeNull();
  });

  it("of the environment's or of an unknown one writes nothing", async () => {
    const secrets = await start({ environment: environmentSecrets("svc", [values.third]) });
    secrets.markUsed("env:0123456789");
    secrets.markUsed("db:0123456789");
    await secrets.close();
    expect(await listSecretRows(database.db)).toEqual([]);
  });
});
