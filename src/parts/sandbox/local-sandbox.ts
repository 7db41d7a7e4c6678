import { randomBytes } from "node:crypto";
import { join } from "node:path";
import type { RunningSandbox } from "../../app/answers.ts";
import type { Config } from "../../app/config/config.ts";
import { sandboxApiKey } from "../../app/create-runtime.ts";
import type { Runtime } from "../../app/runtime.ts";
import { addSecret, listCurrentSecretRows } from "../../core/receiver/secrets-store.ts";
import { makeDirectory } from "../../platform/files.ts";
import { type SandboxCalls, createSandboxCalls } from "./cli/demo/sandbox-calls.ts";

/** Starts the sandbox on its stored state. */
export async function startLocalSandbox(runtime: Runtime): Promise<RunningSandbox> {
  const { config, log } = runtime;
  // Loaded on demand: most processes need no sandbox.
  const { startSandbox } = await import("./start-sandbox.ts");
  const { port } = config.sandbox;
  const stateFile = await sandboxStateFile(config);
  // A random seed, because new ids must not repeat ids that the mirror still has after the state file was removed.
  const seed = randomBytes(8).toString("hex");
  const sandbox = await startSandbox({ port, host: "127.0.0.1", seed, log, stateFile });
  runtime.onClose(() => sandbox.close());
  const calls = createSandboxCalls(sandbox.url, sandboxApiKey);
  const { events } = await calls.control<{ events: number }>("GET", "/");
  return {
    url: sandbox.url,
    isNew: events === 0,
    sendTo: (url) => resumeEndpoint(runtime, calls, url),
  };
}

/** Makes sure that nobody uses the state before anything is removed. */
export async function resetSandbox(config: Config, removeRest: () => Promise<void>): Promise<void> {
  const { holdStateFile, removeStateFile } = await import("./engine/state-file.ts");
  const stateFile = await sandboxStateFile(config);
  const release = await holdStateFile(stateFile);
  try {
    await removeRest();
    await removeStateFile(stateFile);
  } finally {
    await release();
  }
}

/** Kept beside the database, so that the mirror and the sandbox still agree after a restart. */
async function sandboxStateFile({ dataDir }: Config): Promise<string> {
  const directory = join(dataDir, "sandbox");
  await makeDirectory(directory);
  return join(directory, "state.json");
}

/**
 * Makes the sandbox send its webhooks to this receiver, and notes the endpoint as this deployment's. Keeps the endpoint
 * of an earlier start, with its pending deliveries, if its secret is in the database. Otherwise registers a new one and
 * returns its secret.
 */
async function resumeEndpoint(runtime: Runtime, calls: SandboxCalls, url: string): Promise<string[]> {
  const { config, wallClock } = runtime;
  const db = await runtime.db();
  const known = await calls.findEndpoint();
  if (known !== null) {
    const stored = await listCurrentSecretRows(db, wallClock.now());
    const secret = stored.find(({ note }) => note === noteOf(known));
    if (secret !== undefined) {
      await calls.moveEndpoint(known, url);
      await runtime.ask.rememberEndpoint?.(db, { id: known, url, secretId: secret.id });
      return [];
    }
    await calls.removeEndpoint(known);
    await runtime.ask.forgetEndpoint?.(db, known);
  }
  const { id, signingSecret } = await calls.registerEndpoint(url);
  let secretId: string | null = null;
  if (config.encryptionKey !== "none") {
    const encryption = await runtime.encryption();
    ({ id: secretId } = await addSecret({ db, encryption }, config.signature.scheme, {
      value: signingSecret,
      note: noteOf(id),
    }));
  }
  await runtime.ask.rememberEndpoint?.(db, { id, url, secretId });
  return [signingSecret];
}

const noteOf = (endpointId: string): string => `sandbox endpoint ${endpointId}`;
