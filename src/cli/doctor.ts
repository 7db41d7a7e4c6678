import type { Command } from "commander";
import pc from "picocolors";
import { countByState } from "../inbox/queries.ts";
import { inspectEndpoint } from "../reconcile/endpoint/watch-endpoint.ts";
import { exitCodes } from "../platform/errors.ts";
import { QueueUnavailable } from "../queue/job-queue.ts";
import { serviceLocation } from "../runtime.ts";
import type { Runtime } from "../runtime.ts";
import type { CliContext } from "./context.ts";
import { check, checkAll, failed, ok, skipped, warning } from "./doctor/finding.ts";
import type { Finding } from "./doctor/finding.ts";
import { examineAlerts } from "./doctor/alerts.ts";
import { examineProof } from "./doctor/proof.ts";
import { checkDatabase, checkSchemaText } from "./doctor/schema.ts";
import { checkSecrets } from "./doctor/secrets.ts";
import { checkServer } from "./doctor/server-settings.ts";
import { checkWork } from "./doctor/work.ts";
import { withServiceAdvice } from "./service-advice.ts";
import { webhookUrl } from "./endpoint/own-endpoint.ts";

/** A receiver refuses signatures that are off by the tolerance; half of it is time to act. */
const toleratedSkew = 0.5;

export function registerDoctor(program: Command, context: CliContext): void {
  program
    .command("doctor")
    .description(
      "check configuration, database and its server, queue, workers, secrets, service key, clock, endpoint and alert " +
        "channels, and say what to do; exit 2 when something failed",
    )
    .option("--json", "print one JSON object")
    .action(async ({ json }: { json?: boolean }) => {
      const findings = await context.withRuntime("doctor", examine, { logLevel: "silent" });
      const failed = findings.some(({ status }) => status === "failed");
      if (json === true) {
        context.stdout.write(`${JSON.stringify({ healthy: !failed, findings })}\n`);
      } else {
        for (const finding of findings) context.stdout.write(`${line(finding)}\n`);
      }
      if (failed) process.exitCode = exitCodes.configuration;
    });
}

const needDatabase = [
  "schema text",
  "durability",
  "server",
  "database role",
  "inbox",
  "queue",
  "worker",
  "scheduler",
  "signing secrets",
  "proof",
];

/** Looks at everything a deployment needs; one check that fails does not hide the others. */
async function examine(runtime: Runtime): Promise<Finding[]> {
  const findings: Finding[] = [
    ok(
      "configuration",
      `database ${runtime.config.database}, queue on ${runtime.config.queueBackend}`,
    ),
  ];
  const database = await check("database", () => checkDatabase(runtime));
  findings.push(database);
  if (database.status === "failed") {
    findings.push(...needDatabase.map((name) => skipped(name, "the database is not ready")));
  } else {
    findings.push(await check("schema text", () => checkSchemaText(runtime)));
    findings.push(...(await checkAll("server", () => checkServer(runtime))));
    findings.push(await check("inbox", () => checkInbox(runtime)));
    findings.push(await check("queue", () => checkQueue(runtime)));
    findings.push(...(await checkAll("worker", () => checkWork(runtime))));
    findings.push(await check("signing secrets", () => checkSecrets(runtime)));
    findings.push(await check("proof", () => examineProof(runtime)));
  }
  findings.push(...(await checkService(runtime)));
  findings.push(await check("endpoint", () => checkEndpoint(runtime, database)));
  findings.push(...(await examineAlerts(runtime, database)));
  return findings;
}

async function checkInbox(runtime: Runtime): Promise<Finding> {
  const counts = await countByState(await runtime.db());
  const detail = Object.entries(counts)
    .map(([state, n]) => `${state} ${n}`)
    .join(", ");
  if (counts.dead > 0) {
    return warning("inbox", detail, 'look at "npx tallyhook events list --state dead"');
  }
  return counts.failed > 0
    ? warning("inbox", detail, 'look at "npx tallyhook events list --state failed"')
    : ok("inbox", detail);
}

async function checkQueue(runtime: Runtime): Promise<Finding> {
  const { queueBackend } = runtime.config;
  try {
    await (await runtime.queue()).ping();
  } catch (error) {
    if (!(error instanceof QueueUnavailable) || queueBackend !== "redis") throw error;
    return failed(
      "queue",
      error.message,
      "check REDIS_URL (host, port, password) and that Redis runs; until then workers find events in PostgreSQL, later",
    );
  }
  return ok("queue", `${queueBackend} answers`);
}

async function checkService(runtime: Runtime): Promise<Finding[]> {
  const { config, secrets, wallClock } = runtime;
  if (config.service.kind === "sandbox") {
    return [skipped("service", "SVC_BASE_URL is not set: runs on the sandbox")];
  }
  const sentAt = wallClock.now();
  let date: Date | undefined;
  const service = await check("service", async () => {
    const client = runtime.serviceClient(serviceLocation(config, secrets));
    try {
      ({ date } = await client.get("/account", {}, { deadlineMs: 10_000 }));
    } catch (error) {
      throw withServiceAdvice(error, config);
    }
    return ok(
      "service",
      `${config.service.kind === "remote" ? config.service.baseUrl : ""} takes the key`,
    );
  });
  if (date === undefined) return [service, skipped("clock", "the service did not answer")];
  const skewSeconds = Math.round(Math.abs(date.getTime() - sentAt.getTime()) / 1_000);
  const limit = config.signature.toleranceSeconds * toleratedSkew;
  const clock =
    skewSeconds <= limit
      ? ok("clock", `within ${skewSeconds} s of the service's`)
      : failed("clock", `${skewSeconds} s from the service's`, "set this machine's clock (NTP)");
  return [service, clock];
}

async function checkEndpoint(runtime: Runtime, database: Finding): Promise<Finding> {
  const { config } = runtime;
  if (config.service.kind === "sandbox") {
    return skipped("endpoint", "SVC_BASE_URL is not set: runs on the sandbox");
  }
  if (database.status === "failed") return skipped("endpoint", "the database is not ready");
  const tools = { db: await runtime.db(), client: runtime.serviceClient() };
  const report = await inspectEndpoint(tools, webhookUrl(config.publicUrl));
  if (report === null) {
    return warning("endpoint", "its address is not known", "set PUBLIC_URL");
  }
  const [worst] = ["critical", "high", "warning"].flatMap((severity) =>
    report.problems.filter((problem) => problem.severity === severity),
  );
  if (worst === undefined) {
    return ok("endpoint", report.endpoints.map(({ id }) => `${id} is enabled`).join(", "));
  }
  const more = report.problems.length > 1 ? ` (and ${report.problems.length - 1} more)` : "";
  return worst.severity === "critical"
    ? failed("endpoint", worst.says + more, worst.remedy)
    : warning("endpoint", worst.says + more, worst.remedy);
}

const marks = {
  ok: pc.green("ok     "),
  warning: pc.yellow("warning"),
  failed: pc.red("failed "),
  skipped: pc.dim("skipped"),
};

function line({ check: name, status, detail, remedy }: Finding): string {
  const advice = remedy === null ? "" : `\n        ${" ".repeat(18)}→ ${remedy}`;
  return `${marks[status]} ${name.padEnd(18)} ${detail}${advice}`;
}
