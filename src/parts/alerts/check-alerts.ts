import { tallyhook } from "../../platform/command-line.ts";
import type { ChannelDeps } from "./channels/channel-kind.ts";
import { type ChannelSettings, tryOpen } from "./channels/channel-kinds.ts";
import { outboxTrouble } from "./outbox/outbox.ts";
import { type Heartbeat, isWorker, readHeartbeats, schedulerBeat } from "./heartbeats.ts";
import type { AlertSettings } from "./settings.ts";
import { counted } from "../../platform/readable-text.ts";
import { alertChannelDeps, alertSettings } from "./run-alerts.ts";
import type { Runtime } from "../../app/runtime.ts";
import { checkHost } from "../../app/check-host.ts";
import { type CheckResult, check, failed, ok, skipped, warning } from "../../app/check-result.ts";

/** Checks the settings, each channel and the undeliverable messages. Resolves host names and sends nothing. */
export async function checkAlerts(runtime: Runtime, database: CheckResult): Promise<CheckResult[]> {
  const readable = await check("alerts", async () => describe(runtime, alertSettings(runtime)));
  if (readable.status === "failed") return [readable];
  const settings = alertSettings(runtime);
  const deps = alertChannelDeps(runtime, settings);
  const each = await Promise.all(
    Object.entries(settings.channels).map(([name, channel]) =>
      check(`alerts ${name}`, () => checkChannel(`alerts ${name}`, channel, deps)),
    ),
  );
  return [readable, ...each, await check("alerts unsent", () => checkUnsent(runtime, database))];
}

function describe({ config, secrets }: Runtime, settings: AlertSettings): CheckResult {
  const on = Object.values(settings.rules).filter(({ enabled }) => enabled).length;
  const from = config.alerts.settingsFile ?? "defaults";
  const used = JSON.stringify(settings.channels);
  const unused = Object.getOwnPropertyNames(secrets.alertSecrets).filter(
    (name) => name.startsWith("ALERT_") && !used.includes(`"${name}"`),
  );
  const detail = `${counted(on, "rule is", "rules are")} on (settings: ${from})`;
  if (unused.length === 0) return ok("alerts", detail);
  return warning(
    "alerts",
    `no channel uses ${unused.join(", ")}`,
    "name it in the file of ALERT_SETTINGS_FILE, or remove it from the environment",
  );
}

async function checkChannel(check: string, settings: ChannelSettings, deps: ChannelDeps): Promise<CheckResult> {
  const { channel, problem } = tryOpen(settings, deps);
  if (problem !== undefined) return failed(check, problem, null);
  const { host, kind } = channel;
  await channel.close();
  if (host === null) return ok(check, kind);
  return checkHost(check, deps.guard, host, `${kind} at ${host}`);
}

async function checkUnsent(runtime: Runtime, database: CheckResult): Promise<CheckResult> {
  if (database.status === "failed") {
    return skipped("alerts unsent", "the database is not ready");
  }
  const { failed: givenUp, late } = await outboxTrouble(await runtime.db());
  const detail = `messages given up in the last day: ${givenUp}; late by more than 5 minutes: ${late}`;
  return givenUp + late === 0
    ? ok("alerts unsent", detail)
    : warning(
        "alerts unsent",
        detail,
        `try "${tallyhook("alerts test CHANNEL")}", then "${tallyhook("alerts resend --channel CHANNEL")}"`,
      );
}

/** A worker has a heartbeat every 30 s, the scheduler every minute. A slow sweep or a busy queue may delay one. */
const lateAfterSeconds = { worker: 120, scheduler: 300 };

/** Checks that a worker applies events and that a scheduler starts the timed tasks. */
export async function examineWork(runtime: Pick<Runtime, "db">): Promise<CheckResult[]> {
  const beats = await readHeartbeats(await runtime.db());
  return [workers(beats), scheduler(beats)];
}

function workers(beats: readonly Heartbeat[]): CheckResult {
  const ages = beats.filter(isWorker).map(({ ageSeconds }) => ageSeconds);
  const alive = ages.filter((age) => age <= lateAfterSeconds.worker).length;
  const [newestMissing] = ages.filter((age) => age > lateAfterSeconds.worker);
  if (alive === 0) {
    const last = newestMissing === undefined ? "" : `; the last heartbeat was ${ago(newestMissing)}`;
    return failed(
      "worker",
      `no worker runs, so events are stored but not applied, and no alert is sent${last}`,
      `start one: "${tallyhook("worker")}" (or "${tallyhook("start")}" for everything at once)`,
    );
  }
  const run = counted(alive, "worker runs", "workers run");
  return newestMissing === undefined
    ? ok("worker", run)
    : warning(
        "worker",
        `${run}; ${counted(ages.length - alive, "missed its heartbeat", "missed their heartbeats")}, the last one ` +
          `seen ${ago(newestMissing)}`,
        "read its log; if it was killed on purpose, this warning ends after an hour",
      );
}

function scheduler(beats: readonly Heartbeat[]): CheckResult {
  if (!beats.some((beat) => isWorker(beat) && beat.ageSeconds <= lateAfterSeconds.worker)) {
    return skipped("scheduler", "no worker runs");
  }
  const age = beats.find(({ name }) => name === schedulerBeat)?.ageSeconds;
  if (age !== undefined && age <= lateAfterSeconds.scheduler) {
    return ok("scheduler", `ran a task ${ago(age)}`);
  }
  const lacks = "so there is no nightly run and no report is mailed";
  return failed(
    "scheduler",
    age === undefined
      ? `has never run a task, ${lacks}`
      : `ran its last task ${ago(age)} and should run one every minute, ${lacks}`,
    "if a worker started within the last minute, run this again; if not, look in the workers' logs for \"a round " +
      'failed" and "a scheduled task failed", and restart them',
  );
}

function ago(seconds: number): string {
  if (seconds < 120) return `${Math.round(seconds)} s ago`;
  return seconds < 7_200 ? `${Math.round(seconds / 60)} minutes ago` : `${Math.round(seconds / 3_600)} hours ago`;
}
