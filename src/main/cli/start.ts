import { relative } from "node:path";
import type { Command } from "commander";
import pc from "picocolors";
import { tallyhook } from "../../platform/command-line.ts";
import { removeAbandonedPostgres } from "../../platform/embedded/embedded-postgres.ts";
import { ConfigurationError, UnreachableError, UsageError } from "../../platform/errors.ts";
import type { Config, LoadedConfig } from "../../app/config/config.ts";
import { optionalPages } from "../optional-pages.ts";
import { optionalRooms } from "../optional-rooms.ts";
import { createProcessMetrics } from "../../app/metrics/serve-metrics.ts";
import type { DashboardStart, RunningSandbox, SandboxRoom } from "../rooms/room-interfaces.ts";
import { type Runtime, sandboxApiKey, serviceLocation } from "../../app/runtime.ts";
import { runTracing } from "../../app/tracing.ts";
import { assertCanAsk, confirm } from "../../app/cli/confirm.ts";
import type { CliContext } from "../../app/cli/context.ts";
import { migrateAll } from "./migrate.ts";
import { runReceiver } from "./receiver.ts";
import { untilSignal } from "../../app/cli/until-signal.ts";
import { runWorker } from "./worker.ts";

interface StartOptions {
  reset?: boolean;
  yes?: boolean;
}

export function registerStart(program: Command, context: CliContext): void {
  program
    .command("start")
    .description("run everything in one process, on embedded defaults where nothing is set, until Ctrl-C")
    .option("--reset", "first delete the embedded database and the sandbox's state, after asking")
    .option("--yes", "with --reset: delete without asking")
    .action(async (options: StartOptions) => {
      const loaded = context.loaded();
      if (options.reset === true) await reset(context, loaded.config, options.yes === true);
      const stopped = untilSignal();
      await context.withRuntime("start", async (runtime) => {
        // A Ctrl-C during the start lets it complete, so that everything is closed in order.
        const running = await startEverything(runtime, context.version);
        context.stdout.write(banner(loaded, running));
        await stopped;
        context.stdout.write("\nStopping …\n");
      });
      context.stdout.write("Stopped. Nothing that was acknowledged is lost.\n");
    });
}

/**
 * Removes the mirror and the sandbox's state together: a mirror of a removed sandbox would differ from the next one in
 * every object. The sandbox may run with another database than the embedded one, so both are checked for use before
 * anything is removed.
 */
async function reset(context: CliContext, config: Config, isSure: boolean): Promise<void> {
  if (config.database === "external" || config.service.kind === "remote") {
    throw new UsageError(
      "--reset is for the embedded database and the sandbox. DATABASE_URL or SVC_BASE_URL is set: nothing was removed.",
    );
  }
  const shown = shortPath(config.dataDir);
  if (!isSure) {
    assertCanAsk(context);
    await confirm(context, `Delete the embedded database and the sandbox's state in ${shown}?`);
  }
  await sandboxRoom().reset(config, async () => {
    if (await removeAbandonedPostgres(config.dataDir)) return;
    throw new UnreachableError(
      `Another process of Tallyhook uses the database in ${shown}. Stop it first; nothing was removed.`,
    );
  });
  context.stdout.write(`The embedded database and the sandbox's state in ${shown} were deleted.\n`);
}

const shortPath = (path: string): string => {
  const short = relative(process.cwd(), path);
  return short === "" || short.startsWith("..") ? path : short;
};

/** Throws `ConfigurationError` if the sandbox's room was deleted: then only a real service can be used. */
function sandboxRoom(): SandboxRoom {
  if (optionalRooms.sandbox !== undefined) return optionalRooms.sandbox;
  throw new ConfigurationError("This program has no sandbox. Set SVC_BASE_URL and SVC_API_KEY to the service.");
}

interface Running {
  receiverUrl: string;
  /** Signs the owner of this machine in once; null if the dashboard was deleted. */
  dashboardLink: string | null;
  /** Health and metrics of this process. */
  adminUrl: string;
  databaseUrl: string;
  sandbox: Pick<RunningSandbox, "url" | "isNew"> | null;
}

/** The worker is first: whoever reads changes or webhooks from now on has a place before the receiver is ready. */
async function startEverything(runtime: Runtime, version: string): Promise<Running> {
  const { config, secrets } = runtime;
  await migrateAll(runtime);
  await runTracing(runtime);
  const metrics = createProcessMetrics(runtime, { name: "start", version });
  if (config.service.kind === "remote") {
    const worker = await runWorker(runtime, { metrics });
    const receiver = await runReceiver(runtime, { metrics });
    return {
      receiverUrl: receiver.url,
      dashboardLink: await startDashboard(runtime, { onAnswered: metrics.observeRequest }),
      adminUrl: (await metrics.serve(worker)).url,
      databaseUrl: await runtime.databaseUrl(),
      sandbox: null,
    };
  }
  const sandbox = await sandboxRoom().start(runtime);
  const service = { ...serviceLocation(config, secrets), baseUrl: sandbox.url };
  const worker = await runWorker(runtime, { service, metrics });
  const receiver = await runReceiver(runtime, {
    signingSecrets: (url) => sandbox.sendTo(`${url}/webhooks`, optionalRooms.endpoint),
    metrics,
  });
  return {
    receiverUrl: receiver.url,
    dashboardLink: await startDashboard(runtime, {
      service,
      onAnswered: metrics.observeRequest,
    }),
    adminUrl: (await metrics.serve(worker)).url,
    databaseUrl: await runtime.databaseUrl(),
    sandbox,
  };
}

async function startDashboard(runtime: Runtime, role: DashboardStart): Promise<string | null> {
  const dashboard = await optionalPages.dashboard?.start(runtime, role);
  return dashboard?.signInLink ?? null;
}

function banner(
  { config }: LoadedConfig,
  { receiverUrl, dashboardLink, adminUrl, databaseUrl, sandbox }: Running,
): string {
  const database = new URL(databaseUrl);
  const where = `${database.hostname}:${database.port || "5432"}${database.pathname}`;
  const lines = [
    "",
    pc.bold("Tallyhook runs"),
    `  webhooks   ${receiverUrl}/webhooks   (health: /healthz, /readyz)`,
    ...(dashboardLink === null
      ? []
      : [
          `  dashboard  ${dashboardLink}`,
          `             (signs you in once; later: ${tallyhook("users link owner@localhost")})`,
        ]),
    `  worker     in this process, queue on ${config.queueBackend === "redis" ? "Redis" : "PostgreSQL"}`,
    `  metrics    ${adminUrl}/metrics`,
    `  database   ${config.database === "embedded" ? `embedded PostgreSQL, ${where}` : where}`,
  ];
  if (config.service.kind === "remote") lines.push(`  service    ${config.service.baseUrl}`);
  if (sandbox !== null) {
    lines.push(`  sandbox    ${sandbox.url}/v1   (key ${sandboxApiKey})`);
    if (config.database === "embedded") {
      lines.push(
        `  on disk    ${shortPath(config.dataDir)}: database and sandbox, kept until "${tallyhook("start --reset")}"`,
      );
    }
    lines.push(
      "",
      pc.yellow("This is the SANDBOX: no real service, no real money."),
      sandbox.isNew ? "Make a month of traffic, up to now:" : "Make more traffic:",
      trafficCommand(sandbox),
      "See it arrive, report on it, and prove that the mirror equals the service:",
      `  ${tallyhook("events list")}`,
      `  ${tallyhook("report refunds")}`,
      `  ${tallyhook("reconcile")}`,
    );
  }
  return `${lines.join("\n")}\n\nStop with Ctrl-C.\n`;
}

function trafficCommand({ url, isNew }: { url: string; isNew: boolean }): string {
  const wish = isNew ? { orders: 60, subscriptions: 10, past: true } : { orders: 20, subscriptions: 5, days: 0.01 };
  return `  curl -X POST ${url}/_sandbox/traffic -H 'content-type: application/json' -d '${JSON.stringify(wish)}'`;
}
