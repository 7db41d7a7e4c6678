import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { makeDataDir } from "../support/data-directory.ts";
import { eventually } from "../support/eventually.ts";
import { freePort } from "../support/free-port.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { killPrograms, runTallyhook } from "./program.ts";

const database = useTestDatabase();
const dataDir = await makeDataDir();
afterAll(async () => {
  await killPrograms();
  await rm(dataDir, { recursive: true, force: true });
});

test("the first answer that start is ready comes when each destination has its place", async () => {
  const settings = join(dataDir, "forward.jsonc");
  const crm = { url: "https://crm.example.com/in", secretFrom: "FORWARD_CRM", from: "now" };
  const destinations = {
    changes: { ...crm, send: "changes" },
    webhooks: { ...crm, send: "webhooks" },
  };
  await writeFile(settings, JSON.stringify({ destinations }));
  const port = await freePort();
  const program = runTallyhook(["start"], {
    ...database.environment,
    TALLYHOOK_DATA_DIR: dataDir,
    TALLYHOOK_ENCRYPTION_KEY: "ab".repeat(32),
    FORWARD_SETTINGS_FILE: settings,
    FORWARD_CRM: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    HOST: "127.0.0.1",
    PORT: String(port),
    ADMIN_PORT: "0",
    SANDBOX_PORT: String(await freePort()),
    DASHBOARD_PORT: "0",
  });
  const isReady = () =>
    fetch(`http://127.0.0.1:${port}/readyz`).then(
      ({ status }) => status === 200,
      () => false,
    );
  await eventually("it is ready", isReady, { everyMs: 2 });
  const known = await database.db("dispatch.handlers").orderBy("name").pluck<string[]>("name");
  expect(known, program.output()).toEqual(["forward:changes", "forward:webhooks"]);
});
