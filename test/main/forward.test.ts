import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { loadConfig } from "../../src/app/config/config.ts";
import { runForwarding } from "../../src/parts/delivery/forward/run-forwarding.ts";
import { createRuntime } from "../../src/app/create-runtime.ts";
import { ConfigurationError } from "../../src/platform/errors.ts";
import { createLog } from "../../src/platform/log.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { allParts } from "../../src/main/parts.ts";

const database = useTestDatabase();
let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "tallyhook-forward-"));
  await database.db("dispatch.handlers").delete();
});
afterEach(() => rm(folder, { recursive: true, force: true }));

/** A worker's part, by the environment of a deployment. */
async function run(crm: object, env: object = {}): Promise<void> {
  const file = join(folder, "forward.jsonc");
  const common = { url: "https://crm.example.com/in", secretFrom: "FORWARD_CRM" };
  await writeFile(file, JSON.stringify({ destinations: { crm: { ...common, ...crm } } }));
  const loaded = loadConfig({
    DATABASE_URL: database.directUrl,
    FORWARD_SETTINGS_FILE: file,
    FORWARD_CRM: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    ...env,
  });
  const runtime = createRuntime(allParts, loaded, createLog({ level: "silent", name: "test" }));
  try {
    await runForwarding(runtime);
  } finally {
    await runtime.close();
  }
}

test("a destination is known by its name and what it is sent once it is forwarded, and keeps both", async () => {
  await run({ send: "changes" });
  await run({ send: "changes" });
  expect(await database.db("dispatch.handlers").select("name", "source")).toEqual([
    { name: "forward:crm", source: "changes" },
  ]);
});

test("a name that was sent changes cannot be sent webhooks: the start says so, and what to do", async () => {
  await run({ send: "changes" });
  const failure = await run({ send: "webhooks" }).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(ConfigurationError);
  expect((failure as Error).message).toContain(
    'destination "crm" was sent changes so far, and is now to be sent webhooks.',
  );
  expect((failure as Error).message).toContain("Give it another name");
});
