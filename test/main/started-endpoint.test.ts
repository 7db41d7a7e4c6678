import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { listKnownEndpoints } from "../../src/parts/endpoint/endpoints.ts";
import { inspectEndpoint } from "../../src/parts/endpoint/inspect-endpoint.ts";
import { loadConfig } from "../../src/app/config/config.ts";
import { createRuntime, sandboxApiKey } from "../../src/app/create-runtime.ts";
import { createLog } from "../../src/platform/log.ts";
import { createTestDatabase } from "../support/database.ts";
import { allParts } from "../../src/main/parts.ts";

test("the endpoint that a start makes at its sandbox is known here, and stays one over starts and ports", async () => {
  const dataDir = await mkdtemp(join(tmpdir(), "tallyhook-started-"));
  const database = await createTestDatabase();
  const env = {
    DATABASE_URL: database.url,
    TALLYHOOK_DATA_DIR: dataDir,
    TALLYHOOK_ENCRYPTION_KEY: "ab".repeat(32),
    SANDBOX_PORT: "0",
  };
  const seen = [];
  try {
    for (const port of [4711, 4712]) {
      const runtime = createRuntime(allParts, loadConfig(env), createLog({ level: "silent", name: "test" }));
      try {
        const sandbox = await runtime.ask.startSandbox!();
        const url = `http://127.0.0.1:${port}/webhooks`;
        await sandbox.sendTo(url);
        const client = runtime.serviceClient({ baseUrl: sandbox.url, apiKey: sandboxApiKey });
        const report = await inspectEndpoint({ db: database.db, client }, null);
        expect(report).toMatchObject({ endpoints: [{ url }], problems: [] });
        const [known, ...others] = await listKnownEndpoints(database.db);
        expect([known?.url, known?.secretId, others]).toEqual([url, expect.stringMatching(/^db:/), []]);
        seen.push(known?.id);
      } finally {
        await runtime.close();
      }
    }
    expect(new Set(seen).size).toBe(1);
  } finally {
    await database.destroy();
    await rm(dataDir, { recursive: true });
  }
});
