import type { Knex } from "knex";
import { registerEndpoint } from "../../../src/parts/endpoint/cli/endpoint.ts";
import { createEncryption } from "../../../src/platform/encryption.ts";
import { testKey } from "../../../src/parts/sandbox/engine/keys.ts";
import { type Json, type TestSandbox, startTestSandbox } from "../../sandbox/harness.ts";
import { type TestDatabase, createTestDatabase } from "../../support/database.ts";
import { type CommandRun, runCommand } from "./command-line.ts";
import { type FaultyService, startFaultyService } from "./endpoint-faulty-service.ts";
import { emptyTables } from "../../support/empty-tables.ts";

const encryptionKey = "ab".repeat(32);

export interface EndpointStand {
  db: Knex;
  sandbox: TestSandbox;
  service: FaultyService;
  environment: Record<string, string>;
  /** Runs `tallyhook endpoint …` in this process. */
  endpoint(...args: string[]): Promise<CommandRun>;
  /** The same with somebody at the terminal who types this. */
  typing(text: string, ...args: string[]): Promise<CommandRun>;
  /** The account's endpoints, newest first. */
  endpoints(): Promise<Json[]>;
  /** Values of the secrets that are stored, newest first, with their ends. */
  secrets(): Promise<{ value: string; id: string; endsAt: Date | null }[]>;
  close(): Promise<void>;
}

/** A database, a sandbox, and between them a service that fails when it is told to. */
export async function setUpEndpoints(): Promise<EndpointStand> {
  const database: TestDatabase = await createTestDatabase();
  const sandbox = await startTestSandbox("endpoints");
  const service = await startFaultyService(sandbox.url);
  const environment = {
    DATABASE_URL: database.url,
    TALLYHOOK_ENCRYPTION_KEY: encryptionKey,
    SVC_BASE_URL: service.url,
    SVC_API_KEY: testKey,
    PUBLIC_URL: "http://127.0.0.1:9",
  };
  const encryption = createEncryption({ current: encryptionKey });
  return {
    db: database.db,
    sandbox,
    service,
    environment,
    endpoint: (...args) => runCommand(registerEndpoint, ["endpoint", ...args], { env: environment }),
    typing: (stdin, ...args) =>
      runCommand(registerEndpoint, ["endpoint", ...args], {
        env: environment,
        stdin,
        terminal: true,
      }),
    endpoints: async () => (await sandbox.ok("GET", "/v1/webhook_endpoints")).data,
    async secrets() {
      const rows = await database.db("receiver.secrets").orderBy("created_at", "desc");
      return rows.map((row: Json) => ({
        id: row.id,
        value: encryption.decrypt({ keyId: row.key_id, ciphertext: row.ciphertext }),
        endsAt: row.not_after,
      }));
    },
    async close() {
      await service.close();
      await sandbox.close();
      await database.destroy();
    },
  };
}

/** Ready for the next test. */
export async function clearEndpoints({ db, sandbox, service }: EndpointStand): Promise<void> {
  await emptyTables(db, ["receiver.secrets", "reconcile.endpoints", "reconcile.endpoint_calls", "reconcile.findings"]);
  await sandbox.control("POST", "/reset", { seed: crypto.randomUUID() });
  service.faults.length = 0;
  service.given.length = 0;
  service.keys.length = 0;
}
