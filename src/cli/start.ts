import { randomBytes } from "node:crypto";
import type { Command } from "commander";
import pc from "picocolors";
import { startSandbox } from "../sandbox/start.ts";
import type { LoadedConfig } from "../config.ts";
import { sandboxApiKey, serviceLocation } from "../runtime.ts";
import type { Runtime } from "../runtime.ts";
import type { CliContext } from "./context.ts";
import { createSandboxCalls } from "./demo/sandbox-calls.ts";
import { migrateAll } from "./migrate.ts";
import { runReceiver } from "./receiver.ts";
import { untilSignal } from "./until-signal.ts";
import { runWorker } from "./worker.ts";

export function registerStart(program: Command, context: CliContext): void {
  program
    .command("start")
    .description("everything in one process on the defaults, until Ctrl-C")
    .action(async () => {
      const loaded = context.loaded();
      const stopped = untilSignal();
      await context.withRuntime("start", async (runtime) => {
        // Ctrl-C during the start: what is being made is made, then closed with the rest.
        const running = await startEverything(runtime);
        context.stdout.write(banner(loaded, running));
        await stopped;
        context.stdout.write("\nStopping …\n");
      });
      context.stdout.write("Stopped. Nothing that was acknowledged is lost.\n");
    });
}

interface Running {
  receiverUrl: string;
  databaseUrl: string;
  sandboxUrl: string | null;
}

async function startEverything(runtime: Runtime): Promise<Running> {
  const { config, secrets, log } = runtime;
  await migrateAll(runtime);
  if (config.service.kind === "remote") {
    const receiver = await runReceiver(runtime);
    await runWorker(runtime);
    return {
      receiverUrl: receiver.url,
      databaseUrl: await runtime.databaseUrl(),
      sandboxUrl: null,
    };
  }
  const { port } = config.sandbox;
  // The mirror outlives the sandbox's memory: with a seed of its own no id of this life is one of the last.
  const seed = randomBytes(8).toString("hex");
  const sandbox = await startSandbox({ port, host: "127.0.0.1", seed, log });
  runtime.onClose(() => sandbox.close());
  const calls = createSandboxCalls(sandbox.url, sandboxApiKey);
  const receiver = await runReceiver(runtime, {
    signingSecrets: async (url) => [await calls.registerEndpoint(`${url}/webhooks`)],
  });
  await runWorker(runtime, {
    service: { ...serviceLocation(config, secrets), baseUrl: sandbox.url },
  });
  return {
    receiverUrl: receiver.url,
    databaseUrl: await runtime.databaseUrl(),
    sandboxUrl: sandbox.url,
  };
}

function banner({ config }: LoadedConfig, running: Running): string {
  const database = new URL(running.databaseUrl);
  const where = `${database.hostname}:${database.port || "5432"}${database.pathname}`;
  const lines = [
    "",
    pc.bold("Tallyhook runs"),
    `  webhooks   ${running.receiverUrl}/webhooks   (health: /healthz, /readyz)`,
    `  worker     in this process, queue on ${config.queueBackend === "redis" ? "Redis" : "PostgreSQL"}`,
    `  database   ${config.database === "embedded" ? `embedded PostgreSQL, ${where}` : where}`,
  ];
  if (running.sandboxUrl === null) {
    const url = config.service.kind === "remote" ? config.service.baseUrl : "";
    lines.push(`  service    ${url}`);
  } else {
    lines.push(
      `  sandbox    ${running.sandboxUrl}/v1   (key ${sandboxApiKey})`,
      "",
      pc.yellow(
        "This is the SANDBOX: no real service, no real money. Its state is gone when it stops.",
      ),
      "Make traffic:",
      `  curl -X POST ${running.sandboxUrl}/_sandbox/traffic -H 'content-type: application/json' -d '{"orders":20,"subscriptions":5}'`,
      "See it arrive:",
      "  npx tallyhook events list",
    );
  }
  return `${lines.join("\n")}\n\nStop with Ctrl-C.\n`;
}
