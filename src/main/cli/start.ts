import { relative } from "node:path";
import type { Command } from "commander";
import pc from "picocolors";
import { tallyhook } from "../../platform/command-line.ts";
import { removeAbandonedPostgres } from "../../platform/embedded/embedded-postgres.ts";
import { ConfigurationError, UnreachableError, UsageError } from "../../platform/errors.ts";
import type { Config, LoadedConfig } from "../../app/config/config.ts";
import type { RunningSandbox } from "../../app/answers.ts";
import { findRunning, noteRunning } from "./running-here.ts";
import type { DashboardRole } from "../run-dashboard.ts";
import { sandboxApiKey, serviceLocation } from "../../app/create-runtime.ts";
import type { Runtime } from "../../app/runtime.ts";
import { assertCanAsk, confirm } from "../../app/cli/confirm.ts";
import type { CliContext } from "../../app/cli/context.ts";
import { untilSignal } from "../../app/cli/until-signal.ts";

interface StartOptions {
  reset?: boolean;
  yes?: boolean;
}

export function registerStart(program: Command, context: CliContext): void {
  program
    .command("start")
    .option("--reset", "first delete the embedded database and the sandbox's state, after asking")
    .option("--yes", "with --reset: delete without asking")
    .action(async (options: StartOptions) => {
      const loaded = context.loaded();
      if (options.reset === true) await reset(context, loaded.config, options.yes === true);
      const stopped = untilSignal();
      // While PostgreSQL starts in a process of its own.
      const code = loadCode();
      await context.withRuntime("start", async (runtime) => {
        // A Ctrl-C during the start lets it complete, so that everything is closed in order.
        const { dataDir } = loaded.config;
        const running = await startEverything(runtime, await code, context.version).catch((error: unknown) =>
          refuseSecond(dataDir, error),
        );
        const forget = await noteRunning(dataDir, new URL(running.dashboardLink).origin);
        context.stdout.write(banner(loaded, running));
        await stopped;
        context.stdout.write("\nStopping …\n");
        await forget();
      });
      context.stdout.write("Stopped. Nothing that was acknowledged is lost.\n");
    });
}

/** A second start fails at a port or a file that the first one holds: names the first one instead. */
async function refuseSecond(dataDir: string, error: unknown): Promise<never> {
  const other = error instanceof ConfigurationError ? await findRunning(dataDir) : null;
  if (other === null) throw error;
  const { pid, dashboard } = other;
  throw new ConfigurationError(
    `Tallyhook is already running here: pid ${pid}, dashboard at ${dashboard}. Stop it with Ctrl-C in its terminal, or ` +
      `with "kill ${pid}". To run a second one beside it, set another TALLYHOOK_DATA_DIR and other ports.`,
    { cause: error },
  );
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
  const removeDatabase = async (): Promise<void> => {
    if (await removeAbandonedPostgres(config.dataDir)) return;
    throw new UnreachableError(
      `Another process of Tallyhook uses the database in ${shown}. Stop it first; nothing was removed.`,
    );
  };
  await context.withRuntime("start", ({ ask }) => ask.resetSandbox?.(removeDatabase) ?? removeDatabase());
  context.stdout.write(`The embedded database and the sandbox's state in ${shown} were deleted.\n`);
}

const shortPath = (path: string): string => {
  const short = relative(process.cwd(), path);
  return short === "" || short.startsWith("..") ? path : short;
};

interface Running {
  receiverUrl: string;
  /** Signs the owner of this machine in once. */
  dashboardLink: string;
  /** Health and metrics of this process. */
  adminUrl: string;
  databaseUrl: string;
  sandbox: Pick<RunningSandbox, "url" | "isNew"> | null;
}

async function loadCode() {
  const [migrating, tracing, metrics, worker, receiver, dashboard] = await Promise.all([
    import("../../app/processes/migrate-all.ts"),
    import("../../app/tracing.ts"),
    import("../../app/metrics/serve-metrics.ts"),
    import("../../app/processes/run-worker.ts"),
    import("../../app/processes/run-receiver.ts"),
    import("../run-dashboard.ts"),
  ]);
  return { ...migrating, ...tracing, ...metrics, ...worker, ...receiver, ...dashboard };
}

type Code = Awaited<ReturnType<typeof loadCode>>;

/** The worker is first: every reader of changes or webhooks has a place before the receiver is ready. */
async function startEverything(runtime: Runtime, code: Code, version: string): Promise<Running> {
  const { config, secrets } = runtime;
  const { migrateAll, runTracing, createProcessMetrics, runWorker, runReceiver } = code;
  const startDashboard = async (role: DashboardRole): Promise<string> =>
    code.ownersLink(runtime, (await code.runDashboard(runtime, role)).url);
  await migrateAll(runtime);
  await runTracing(runtime);
  const metrics = createProcessMetrics(runtime, { name: "start", version });
  if (config.service.kind === "remote") {
    const worker = await runWorker(runtime, { metrics });
    const receiver = await runReceiver(runtime, { metrics });
    return {
      receiverUrl: receiver.url,
      dashboardLink: await startDashboard({ onAnswered: metrics.observeRequest }),
      adminUrl: (await metrics.serve(worker)).url,
      databaseUrl: await runtime.databaseUrl(),
      sandbox: null,
    };
  }
  const sandbox = await runtime.ask.startSandbox?.();
  if (sandbox === undefined) {
    throw new ConfigurationError("This program has no sandbox. Set SVC_BASE_URL and SVC_API_KEY to the service.");
  }
  const service = { ...serviceLocation(config, secrets), baseUrl: sandbox.url };
  const worker = await runWorker(runtime, { service, metrics });
  const receiver = await runReceiver(runtime, {
    signingSecrets: (url) => sandbox.sendTo(`${url}/webhooks`),
    metrics,
  });
  return {
    receiverUrl: receiver.url,
    dashboardLink: await startDashboard({
      service,
      onAnswered: metrics.observeRequest,
    }),
    adminUrl: (await metrics.serve(worker)).url,
    databaseUrl: await runtime.databaseUrl(),
    sandbox,
  };
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
    `  dashboard  ${dashboardLink}`,
    "             it signs you in once; this makes another link:",
    `             ${tallyhook("users link owner@localhost")}`,
    `  webhooks   ${receiverUrl}/webhooks   (health: /healthz, /readyz)`,
    `  worker     in this process, queue on ${config.queueBackend === "redis" ? "Redis" : "PostgreSQL"}`,
    `  metrics    ${adminUrl}/metrics`,
    `  database   ${config.database === "embedded" ? `embedded PostgreSQL, ${where}` : where}`,
  ];
  if (config.service.kind === "remote") lines.push(`  service    ${config.service.baseUrl}`);
  if (sandbox !== null) {
    lines.push(`  sandbox    ${sandbox.url}/v1   (key ${sandboxApiKey})`);
    if (config.database === "embedded") {
      lines.push(`  on disk    ${shortPath(config.dataDir)}   (database and sandbox, kept)`);
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
      ...(config.database === "embedded"
        ? ["Begin again with an empty database and sandbox:", `  ${tallyhook("start --reset")}`]
        : []),
    );
  }
  return `${lines.join("\n")}\n\nStop with Ctrl-C.\n`;
}

function trafficCommand({ url, isNew }: { url: string; isNew: boolean }): string {
  const wish = isNew ? { orders: 60, subscriptions: 10, past: true } : { orders: 20, subscriptions: 5, days: 0.01 };
  return `  curl -X POST ${url}/_sandbox/traffic -H 'content-type: application/json' -d '${JSON.stringify(wish)}'`;
}
