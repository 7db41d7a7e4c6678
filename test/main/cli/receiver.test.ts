import { afterEach, expect, test, vi } from "vitest";
import { runReceiver } from "../../../src/app/processes/run-receiver.ts";
import { loadConfig } from "../../../src/app/config/config.ts";
import { createEncryption } from "../../../src/platform/encryption.ts";
import { ConfigurationError } from "../../../src/platform/errors.ts";
import { createLog } from "../../../src/platform/log.ts";
import { migrateQueueSchema } from "../../../src/core/queue/backend.ts";
import { readReceivers } from "../../../src/core/receiver/heartbeats.ts";
import { addSecret } from "../../../src/core/receiver/secrets-store.ts";
import { createRuntime } from "../../../src/app/create-runtime.ts";
import { useTestDatabase } from "../../support/use-database.ts";
import { allParts } from "../../../src/main/parts.ts";

const value = "whsec_a-secret-that-is-long-enough";

const database = useTestDatabase();
afterEach(() => database.db("receiver.secrets").delete());

/** What the start of a receiver says when it fails. */
async function refusalWith(env: Record<string, string>): Promise<string> {
  const loaded = loadConfig({ DATABASE_URL: database.url, PORT: "0", ...env });
  const runtime = createRuntime(allParts, loaded, createLog({ level: "silent", name: "test" }));
  const failure: unknown = await runReceiver(runtime).then(
    () => null,
    (error: unknown) => error,
  );
  await runtime.close();
  expect(failure).toBeInstanceOf(ConfigurationError);
  return (failure as ConfigurationError).message;
}

const key = { TALLYHOOK_ENCRYPTION_KEY: "cd".repeat(32) };
const storeUnderAnotherKey = () =>
  addSecret({ db: database.db, encryption: createEncryption({ current: "ab".repeat(32) }) }, "svc", { value });

test("a receiver that could verify nothing does not start", async () => {
  expect(await refusalWith(key)).toContain("There is no signing secret. Set SVC_WEBHOOK_SECRETS");
  expect(await refusalWith({})).toContain("There is no signing secret");
});

test("one whose only secret cannot be decrypted says what to do", async () => {
  const { id } = await storeUnderAnotherKey();
  expect(await refusalWith(key)).toContain(
    `The signing secret ${id} cannot be decrypted with TALLYHOOK_ENCRYPTION_KEY`,
  );
  expect(await refusalWith({})).toContain("TALLYHOOK_ENCRYPTION_KEY is not set");
});

test("one that cannot read its secrets does not say that there are none", async () => {
  await database.db.raw("alter table receiver.secrets rename to hidden");
  const message = await refusalWith(key);
  await database.db.raw("alter table receiver.hidden rename to secrets");
  expect(message).toContain("The signing secrets in the database cannot be read. Check that");
});

test("one good secret does not cover for a bad one beside it", async () => {
  const message = await refusalWith({
    SVC_SIGNATURE_SCHEME: "standard-webhooks",
    SVC_WEBHOOK_SECRETS: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw,whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaL",
  });
  expect(message).toContain("SVC_WEBHOOK_SECRETS: secret number 2 is not base64");
});

test("one that runs says so at once, and says that it ends", async () => {
  await migrateQueueSchema(database.directUrl);
  const loaded = loadConfig({ DATABASE_URL: database.url, PORT: "0", SVC_WEBHOOK_SECRETS: value });
  const runtime = createRuntime(allParts, loaded, createLog({ level: "silent", name: "test" }));
  await runReceiver(runtime);
  await vi.waitFor(async () => {
    expect((await readReceivers(database.db)).presence).toMatchObject({ ready: 1, missing: 0 });
  }, 10_000);
  await runtime.close();
  expect((await readReceivers(database.db)).presence).toMatchObject({ ready: 0, missing: 0 });
});
