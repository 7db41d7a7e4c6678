import { beforeEach, describe, expect, it } from "vitest";
import { createEncryption } from "../../src/platform/encryption.ts";
import { ConfigurationError, UsageError } from "../../src/platform/errors.ts";
import {
  type NewSecret,
  addSecret,
  environmentSecrets,
  listSecretRows,
  listCurrentSecretRows,
  recentSecretUses,
  retireSecret,
} from "../../src/core/receiver/secrets-store.ts";
import { useTestDatabase } from "../support/use-database.ts";

const encryption = createEncryption({ current: "ab".repeat(32) });
const value = "whsec_a-secret-that-is-long-enough";
const now = new Date("2026-03-01T12:00:00Z");

const database = useTestDatabase();

const add = (secret: NewSecret) => addSecret({ db: database.db, encryption }, "svc", secret);

beforeEach(() => database.db("receiver.secrets").delete());

describe("adding a secret", () => {
  it("stores it with its window and its note", async () => {
    const notAfter = new Date("2026-04-01T00:00:00Z");
    const { id, outcome } = await add({ value, notBefore: now, notAfter, note: "rotated by hand" });
    expect(outcome).toBe("added");
    const [row] = await listSecretRows(database.db);
    expect(row).toMatchObject({
      id,
      not_before: now,
      not_after: notAfter,
      note: "rotated by hand",
      last_used_at: null,
      retired_at: null,
    });
    const { key_id: keyId = "", ciphertext = Buffer.alloc(0) } = row ?? {};
    expect(encryption.decrypt({ keyId, ciphertext })).toBe(value);
  });

  it("twice changes nothing and says so, also after it was retired", async () => {
    const { id } = await add({ value });
    await retireSecret(database.db, id, { now, at: now });
    const [before] = await listSecretRows(database.db);
    expect(await add({ value })).toEqual({ id, outcome: "known" });
    expect(before?.not_after).toEqual(now);
    expect(await listSecretRows(database.db)).toEqual([before]);
  });

  it("again under another key, or after its bytes were altered, encrypts it again and leaves its times", async () => {
    const { id } = await add({ value, notBefore: now, note: "first" });
    await retireSecret(database.db, id, { now, at: now });
    const [before] = await listSecretRows(database.db);
    const other = createEncryption({ current: "cd".repeat(32), previous: ["ab".repeat(32)] });
    const again = () => addSecret({ db: database.db, encryption: other }, "svc", { value });
    expect(await again()).toEqual({ id, outcome: "encrypted_anew" });
    await database.db("receiver.secrets").update({ ciphertext: Buffer.alloc(60) });
    expect(await again()).toEqual({ id, outcome: "encrypted_anew" });
    expect(await again()).toEqual({ id, outcome: "known" });

    const [row] = await listSecretRows(database.db);
    const { key_id: keyId = "", ciphertext = Buffer.alloc(0) } = row ?? {};
    expect(createEncryption({ current: "cd".repeat(32) }).decrypt({ keyId, ciphertext })).toBe(value);
    expect({ ...row, key_id: "", ciphertext: "" }).toEqual({
      ...before,
      key_id: "",
      ciphertext: "",
    });
  });

  it.each(["", "short", "fifteen-bytes!!", "with spaces between the words", `${value}\n`])(
    "refuses %j, which could verify nothing or anything",
    async (bad) => {
      await expect(add({ value: bad })).rejects.toBeInstanceOf(UsageError);
      expect(await listSecretRows(database.db)).toEqual([]);
    },
  );

  it("refuses what the scheme cannot use", async () => {
    const adding = addSecret({ db: database.db, encryption }, "standard-webhooks", { value });
    await expect(adding).rejects.toThrow("base64");
  });

  it("refuses a window that never opens", async () => {
    await expect(add({ value, notBefore: now, notAfter: now })).rejects.toThrow("end before it begins");
  });

  it("never shows the value in its refusal", async () => {
    await expect(add({ value: "tooshort12" })).rejects.not.toThrow("tooshort12");
  });
});

describe("retiring a secret", () => {
  it("ends it at the given time, which can be put off", async () => {
    const { id } = await add({ value });
    const later = new Date("2026-03-02T12:00:00Z");
    expect(await retireSecret(database.db, id, { now, at: later })).toBe(true);
    expect(await listCurrentSecretRows(database.db, now)).toHaveLength(1);
    expect(await listCurrentSecretRows(database.db, later)).toHaveLength(0);
    await retireSecret(database.db, id, { now, at: now });
    expect(await listCurrentSecretRows(database.db, now)).toHaveLength(0);
  });

  it("says when there is no such secret", async () => {
    expect(await retireSecret(database.db, "db:nothing", { now, at: now })).toBe(false);
  });
});

it("the newest receipts tell when a secret of the environment was last used", async () => {
  const { id: env } = environmentSecrets("svc", [value])[0] ?? { id: "" };
  const receipt = (event: string, secret: string, at: string): Record<string, unknown> => ({
    event_id: event,
    raw_sha256: Buffer.alloc(32, event),
    secret_id: secret,
    received_at: at,
  });
  await database
    .db("inbox.receipts")
    .insert([
      receipt("a", env, "2026-01-01T00:00:00Z"),
      receipt("b", env, "2026-01-02T00:00:00Z"),
      receipt("c", "db:x", "2026-01-03T00:00:00Z"),
    ]);
  expect(await recentSecretUses(database.db)).toEqual(
    new Map([
      [env, new Date("2026-01-02T00:00:00Z")],
      ["db:x", new Date("2026-01-03T00:00:00Z")],
    ]),
  );
  expect((await recentSecretUses(database.db, 1)).has(env)).toBe(false);
});

describe("the secrets of the environment", () => {
  it("have ids that do not depend on their place, nor show their value", () => {
    const [only] = environmentSecrets("svc", [value]);
    const [, moved] = environmentSecrets("svc", ["another-secret-in-front-of-it", value]);
    expect(moved?.id).toBe(only?.id);
    expect(only?.id).toMatch(/^env:[0-9a-f]{10}$/);
  });

  it("count once when they are named twice", () => {
    expect(environmentSecrets("svc", [value, value])).toHaveLength(1);
  });

  it("are refused where they are more than eight", () => {
    const values = Array.from({ length: 9 }, (_, n) => `${value}-${n}`);
    expect(environmentSecrets("svc", [...values.slice(1), ...values.slice(1)])).toHaveLength(8);
    expect(() => environmentSecrets("svc", values)).toThrow(ConfigurationError);
    expect(() => environmentSecrets("svc", values)).toThrow(/9 secrets; at most 8 are allowed/);
  });

  it.each([
    ["svc", "", "is empty"],
    ["hex", "fifteen-bytes!!", "has 15 bytes"],
    ["standard-webhooks", "not base64 !", "contains white space"],
    ["standard-webhooks", "whsec_----------------", "is not base64"],
  ] as const)("of the scheme %s stop the start when one is %j", (scheme, bad, why) => {
    const good = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const load = (): unknown => environmentSecrets(scheme, [good, bad]);
    expect(load).toThrow(ConfigurationError);
    expect(load).toThrow(`SVC_WEBHOOK_SECRETS: secret number 2 ${why}`);
  });
});
