import type { Command } from "commander";
import pc from "picocolors";
import { getAccount } from "../../../core/contract/resources/account.ts";
import { readLockWaits } from "../../../core/inbox/locked-events.ts";
import { countByState } from "../../../core/inbox/queries.ts";
import { readFeedHealth } from "../../../core/mirror/changes/feed-partitions.ts";
import { readPartitionHealth } from "../../../core/inbox/partitions.ts";
import { tallyhook } from "../../../platform/command-line.ts";
import { exitCodes } from "../../../platform/errors.ts";
import { MailNotSent, openMailer } from "../../../platform/mail.ts";
import { counted, durationText } from "../../../platform/readable-text.ts";
import { JobNotTaken, QueueUnavailable } from "../../../core/queue/job-queue.ts";
import { serviceLocation } from "../../../app/create-runtime.ts";
import type { Runtime } from "../../../app/runtime.ts";
import { type CliContext, withServiceAdvice } from "../../../app/cli/context.ts";
import { checkDatabase, checkDirect, checkSchemaText, checkServer } from "./database.ts";
import { type CheckResult, check, checkAll, failed, ok, skipped, warning } from "../../../app/check-result.ts";
import { checkBackups, checkDisk, checkReceivers, checkSecrets } from "./own-checks.ts";
import { judgeRedis } from "./redis.ts";
import { checkTuning } from "./tuning.ts";

/**
 * Share of the signature tolerance. A receiver refuses signatures at the whole tolerance; a warning at half of it
 * leaves time to act.
 */
const toleratedSkew = 0.5;

export function registerDoctor(program: Command, context: CliContext): void {
  program
    .command("doctor")
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

/** Checks of core that need the database. */
const needDatabase = [
  "schema text",
  "durability",
  "server",
  "database role",
  "tuning",
  "inbox",
  "partitions",
  "queue",
  "backup",
  "receiver",
  "signing secrets",
];

/** Checks everything a deployment needs: core, and then each part. A check that fails does not hide the others. */
export async function examine(runtime: Runtime): Promise<CheckResult[]> {
  const findings: CheckResult[] = [
    ok("configuration", `database ${runtime.config.database}, queue on ${runtime.config.queueBackend}`),
  ];
  const database = await check("database", () => checkDatabase(runtime));
  findings.push(database);
  const ofParts = await examineParts(runtime, database);
  if (database.status === "failed") {
    findings.push(...needDatabase.map((name) => skipped(name, "the database is not ready")));
  } else {
    if (runtime.secrets.databaseDirectUrl !== null) {
      findings.push(await check("pooler", () => checkDirect(runtime)));
    }
    findings.push(await check("schema text", () => checkSchemaText(runtime)));
    findings.push(...(await checkAll("server", () => checkServer(runtime))));
    findings.push(...(await checkAll("tuning", () => checkTuning(runtime))));
    findings.push(...(await checkAll("disk", () => checkDisk(runtime))));
    findings.push(await check("inbox", () => checkInbox(runtime)));
    findings.push(await check("partitions", () => checkPartitions(runtime)));
    const workerRuns = !ofParts.some(({ check: of, status }) => of === "worker" && status === "failed");
    findings.push(await check("queue", () => checkQueue(runtime, { workerRuns })));
    findings.push(...(await checkAll("redis", () => checkRedis(runtime))));
    findings.push(await check("backup", () => checkBackups(runtime)));
    findings.push(await check("receiver", () => checkReceivers(runtime)));
    findings.push(await check("signing secrets", () => checkSecrets(runtime)));
  }
  findings.push(...(await checkService(runtime)));
  findings.push(await check("mail", () => checkMail(runtime)));
  return [...findings, ...ofParts];
}

async function examineParts(runtime: Runtime, database: CheckResult): Promise<CheckResult[]> {
  const findings: CheckResult[] = [];
  for (const { names, needsDatabase, examine: run } of runtime.parts.flatMap(({ checks = [] }) => checks)) {
    const isSkipped = needsDatabase && database.status === "failed";
    if (isSkipped) findings.push(...names.map((name) => skipped(name, "the database is not ready")));
    else findings.push(...(await checkAll(names[0] ?? "", () => run(runtime, database))));
  }
  return findings;
}

async function checkInbox(runtime: Runtime): Promise<CheckResult> {
  const db = await runtime.db();
  const counts = await countByState(db);
  const detail = Object.entries(counts)
    .map(([state, n]) => `${state} ${n}`)
    .join(", ");
  const waits = await readLockWaits(db);
  if (waits !== null) {
    const { events, waitedMs, holder } = waits;
    return warning(
      "inbox",
      `${detail}; ${counted(events, "event waits for a lock", "events wait for locks")}, the first for ` +
        `${durationText(waitedMs)}, of ${holder}`,
      "end that session, or wait for its end; the events are applied within seconds of it",
    );
  }
  if (counts.dead > 0) {
    return warning("inbox", detail, `run "${tallyhook("events list --state dead")}"`);
  }
  if (counts.failed > 0) return warning("inbox", detail, `run "${tallyhook("events list --state failed")}"`);
  return ok("inbox", detail);
}

/** Checks that there are partitions for the events that arrive next, and for the changes that they make. */
async function checkPartitions(runtime: Runtime): Promise<CheckResult> {
  const name = "partitions";
  const db = await runtime.db();
  const { weeksAhead, ...inbox } = await readPartitionHealth(db, runtime.wallClock.now());
  const rooms = { inbox, feed: await readFeedHealth(db) };
  const problems = Object.entries(rooms).flatMap(([room, { spansAhead, isOverflowing }]) => {
    if (isOverflowing) {
      const effect = room === "inbox" ? "and are applied" : "and are read";
      return `the ${room} has none for current rows: they go into the default partition, ${effect}`;
    }
    const isReady = spansAhead > 0 && (room !== "inbox" || weeksAhead > 0);
    return isReady ? [] : `the ${room} has none ready for the next rows`;
  });
  if (problems.length === 0) return ok(name, "inbox and feed have those for the next rows");
  return warning(
    name,
    problems.join("; "),
    "a worker makes them within an hour of its start: start one, and read its log for inbox-partitions and " +
      "feed-partitions",
  );
}

/** A queue is in order when a job came back. Without a worker none can, which the check of workers reports. */
async function checkQueue(runtime: Runtime, { workerRuns }: { workerRuns: boolean }): Promise<CheckResult> {
  const name = "queue";
  const { queueBackend } = runtime.config;
  const meanwhile = "until then workers find events in PostgreSQL, with a delay";
  try {
    await (await runtime.queue()).roundTrip();
  } catch (error) {
    if (!(error instanceof QueueUnavailable)) throw error;
    if (error instanceof JobNotTaken) {
      return workerRuns
        ? failed(
            name,
            error.message,
            `look in the workers' log for "no job can be taken from the queue"${
              queueBackend === "redis" ? "; the user in REDIS_URL may lack a right (docs/operations.md)" : ""
            }; ${meanwhile}`,
          )
        : ok(name, `${queueBackend} takes jobs; no worker runs that would take one`);
    }
    return failed(
      name,
      error.message,
      queueBackend === "redis"
        ? `check REDIS_URL (host, port, user, password) and that Redis runs and can be written to; ${meanwhile}`
        : `run "${tallyhook("migrate")}"; if it has nothing to do, see what the database's log says of schema ` +
            `bullmq; ${meanwhile}`,
    );
  }
  return ok(name, `${queueBackend}: a job came back from a worker`);
}

async function checkRedis({ secrets }: Runtime): Promise<CheckResult[]> {
  if (secrets.redisUrl === null) return [];
  const { examineRedis } = await import("../../../core/queue/examine-redis.ts");
  return judgeRedis(await examineRedis(secrets.redisUrl));
}

async function checkService(runtime: Runtime): Promise<CheckResult[]> {
  const { config, secrets, wallClock } = runtime;
  if (config.service.kind === "sandbox") {
    return [skipped("service", "SVC_BASE_URL is not set, so the sandbox is the service")];
  }
  const sentAt = wallClock.now();
  let date: Date | undefined;
  const service = await check("service", async () => {
    const client = runtime.serviceClient(serviceLocation(config, secrets));
    try {
      ({ date } = await client.get(getAccount, {}, { deadlineMs: 10_000 }));
    } catch (error) {
      throw withServiceAdvice(error, config);
    }
    return ok("service", `${config.service.kind === "remote" ? config.service.baseUrl : ""} accepts the key`);
  });
  if (date === undefined) return [service, skipped("clock", "the service did not answer")];
  const skewSeconds = Math.round(Math.abs(date.getTime() - sentAt.getTime()) / 1_000);
  const limit = config.signature.toleranceSeconds * toleratedSkew;
  const clock =
    skewSeconds <= limit
      ? ok("clock", `${skewSeconds} s from the service's clock`)
      : failed("clock", `${skewSeconds} s from the service's clock`, "set this machine's clock (NTP)");
  return [service, clock];
}

/** Goes the way of every mail, up to the mail itself. */
async function checkMail({ secrets, config }: Runtime): Promise<CheckResult> {
  const name = "mail";
  const [url, from] = [secrets.smtpUrl, config.mailFrom];
  if (url === null || from === null) return skipped(name, "SMTP_URL is not set");
  const mailer = openMailer({ url, from });
  try {
    await mailer.verify();
  } catch (error) {
    if (!(error instanceof MailNotSent)) throw error;
    return failed(
      name,
      `no mail can be sent (${error.code})`,
      error.remedy ?? "check host, port, user and password of SMTP_URL, and the server's log",
    );
  } finally {
    mailer.close();
  }
  return ok(name, "the server of SMTP_URL accepts connection, encryption and sign-in");
}

const marks = {
  ok: pc.green("ok     "),
  advice: pc.cyan("advice "),
  warning: pc.yellow("warning"),
  failed: pc.red("failed "),
  skipped: pc.dim("skipped"),
};

function line({ check: name, status, detail, remedy }: CheckResult): string {
  const advice = remedy === null ? "" : `\n        ${" ".repeat(18)}→ ${remedy}`;
  return `${marks[status]} ${name.padEnd(18)} ${detail}${advice}`;
}
