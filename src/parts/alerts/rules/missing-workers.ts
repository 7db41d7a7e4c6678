import { tallyhook } from "../../../platform/command-line.ts";
import { counted } from "../../../platform/readable-text.ts";
import type { Begun } from "../condition.ts";
import { type Heartbeat, isWorker, readHeartbeats, schedulerBeat } from "../heartbeats.ts";
import { count } from "../setting-schemas.ts";
import { type WatchContext, watch } from "../watch.ts";
import { type AbsentThings, absentFacts } from "./absent-things.ts";
import { headlineText } from "./wording.ts";

const minuteMs = 60_000;

/** A first start may take a while to reach the queue. The scheduler sends a heartbeat every minute. */
const schedulerGraceMs = 10 * minuteMs;

/** Workers, or the scheduler, whose heartbeats are missing. */
export const missingWorkers = watch({
  rule: "silence_worker",
  about: 'A worker or the scheduler has sent no heartbeat for "afterMinutes" minutes.',
  severity: "critical",
  settings: { afterMinutes: count(1, 1_440, 5) },
  clock: "service",
  read: readHeartbeats,
  begins(beats, context) {
    const { settings, watched } = context;
    if (watched.steadyMs < settings.afterMinutes * minuteMs) return null;
    const stopped = beats.filter(({ ageSeconds }) => ageSeconds > settings.afterMinutes * 60);
    const worker = absent(stopped.filter(isWorker));
    const scheduler = absent(stopped.filter(isScheduler));
    // A heartbeat that never existed is not missed. This one starts with the first worker, so it is expected from the
    // first sweep on.
    const isNeverScheduled = !beats.some(isScheduler) && watched.everMs >= schedulerGraceMs;
    return [
      worker && withoutWorker(worker, context),
      scheduler && withoutScheduler(scheduler, context),
      isNeverScheduled ? neverScheduled(context) : null,
    ];
  },
  end: (key) =>
    key === "silence:worker"
      ? {
          title: "The missing worker is back, or is no longer expected",
          advice:
            "A worker is no longer expected once it has been missing for an hour. Check that enough workers run: " +
            `"${tallyhook("doctor")}". If the worker was not stopped on purpose, its log says why it stopped.`,
        }
      : {
          title: "Scheduled tasks start again",
          advice: `If the nightly run was due in the meantime, it did not start: run "${tallyhook("reconcile")}".`,
        },
  samples({ watched: { first: beatAt } }) {
    const [late, beats] = [
      { beatAt, ageSeconds: 97_200 },
      { beatAt, ageSeconds: 1, name: schedulerBeat },
    ];
    return {
      "a worker missing": [{ ...late, name: "worker:17:sample" }, beats],
      "no scheduled tasks": [{ ...late, name: schedulerBeat }],
      "scheduled tasks never started": [],
    };
  },
});

const isScheduler = ({ name }: Heartbeat): boolean => name === schedulerBeat;

/** The stopped workers, the first to stop first; null where there are none. */
function absent(stopped: readonly Heartbeat[]): AbsentThings | null {
  const names = stopped.map(({ name }) => name).toReversed();
  const oldest = stopped.at(-1)?.beatAt;
  return oldest === undefined ? null : { count: names.length, oldest, examples: names.slice(0, 10) };
}

const withoutWorker = (missing: AbsentThings, context: WatchContext): Begun => ({
  ...absentFacts(missing, context),
  key: "silence:worker",
  title: headlineText({
    lead: `${counted(missing.count, "worker")} without a heartbeat since ${context.shortTime(missing.oldest)}`,
    next: "Stopped or killed",
  }),
  advice:
    `Read its log, and check the memory of its machine. Then start it again: "${tallyhook("worker")}". The other ` +
    "workers apply the events that it held.",
});

const withoutScheduler = (missing: AbsentThings, context: WatchContext): Begun => ({
  ...absentFacts(missing, context),
  key: "silence:scheduler",
  title: headlineText({
    lead: `No scheduled task started since ${context.shortTime(missing.oldest)}`,
    next: "The nightly run will not start",
  }),
  advice:
    'Workers run, but none of them starts the scheduled tasks. Their logs say why: look for "a round failed" and ' +
    `"a scheduled task failed". Then restart a worker: within a minute "${tallyhook("doctor")}" shows that the ` +
    `scheduler ran a task. If the nightly run was due in the meantime, run "${tallyhook("reconcile")}".`,
});

/** A scheduler that has never sent a heartbeat, though workers have run since the first sweep. */
const neverScheduled = (context: WatchContext): Begun => ({
  ...withoutScheduler({ count: 1, oldest: context.watched.first, examples: ["scheduler"] }, context),
  title: headlineText({
    lead: `No scheduled task has ever started; workers have run since ${context.shortTime(context.watched.first)}`,
    next: "The nightly run will not start",
  }),
});
