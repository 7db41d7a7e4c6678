import type { Knex } from "knex";
import { counted, durationText, withoutControls } from "../../platform/readable-text.ts";
import { type AlertContext, wordingOf } from "../alert-context.ts";
import type { AlertFact } from "../message.ts";
import { clearOthers, raise } from "../raise-conditions.ts";
import type { Condition, End } from "../timeline.ts";
import { watchedSince } from "./watch-absence.ts";
import { type Wording, headlineText, shortened } from "./wording.ts";

/** How one of the merchant's handlers does. */
export interface HandlerState {
  name: string;
  pausedBy: "person" | "failures" | "subscriber" | null;
  pausedAt: Date | null;
  pauseReason: string | null;
  /** Changes that are given up, of each object one at most; not counted further than was asked. */
  dead: number;
  deadSince: Date | null;
  oldestDead: {
    seq: number;
    kind: string;
    resource: string;
    id: string;
    error: string | null;
    holdsUp: number;
  } | null;
  /** When the oldest change of the feed that it has not looked at was recorded. */
  unreadSince: Date | null;
  /** When the first of its waiting changes was due, or will be. */
  nextDueAt: Date | null;
}

/** What is asked of who runs handlers. Absent without handlers: nobody is told then. */
export interface HandlerQuestions {
  handlersHealth?(db: Knex, counted: { most: number }): Promise<readonly HandlerState[]>;
}

const hourMs = 3_600_000;

/** After a downtime of everything, handlers first catch up. */
const graceMs = 10 * 60_000;

/** More are not counted: the watch asks every half minute. */
const mostCounted = 1_000;

const atMost = (n: number, one: string, many?: string): string =>
  n < mostCounted ? counted(n, one, many) : `${mostCounted} or more ${many ?? `${one}s`}`;

/** Reports handlers that gave a change up, that are paused by failures, or far behind. Needs a transaction; idempotent. */
export async function watchHandlers(
  trx: Knex.Transaction,
  alertContext: AlertContext,
  { handlersHealth }: HandlerQuestions,
): Promise<void> {
  if (handlersHealth === undefined) return;
  const at = alertContext.clock.now();
  const context = { ...wordingOf(alertContext), at };
  const handlers = await handlersHealth(trx, { most: mostCounted });
  const since = await watchedSince(trx);
  const isSettled = since !== null && at.getTime() - since.getTime() >= graceMs;
  for (const { prefix, conditionOf, end, waits } of watched) {
    const conditions = handlers.flatMap((handler) => conditionOf(handler, context) ?? []);
    const keep = conditions.map(({ key }) => key);
    await clearOthers(trx, alertContext, { prefix, keep, at, end }, "sweep");
    if (isSettled || !waits) await raise(trx, alertContext, conditions, "sweep");
  }
}

type Context = Wording & { at: Date };

/** Changes that failed at their last attempt. Sent again each time their number has doubled. Pure. */
export function handlerDeadCondition(
  { name, dead, deadSince, oldestDead }: HandlerState,
  { rules, localTime, at }: Context,
): Condition | null {
  if (oldestDead === null) return null;
  const { seq, kind, resource, id, error, holdsUp } = oldestDead;
  return {
    key: `${prefixes.dead}${name}`,
    rule: "handler_dead",
    severity: rules.handler_dead.severity,
    title: headlineText({
      lead: `${atMost(dead, "change is", "changes are")} dead for "${shortened(name)}"`,
      cause: error === null ? null : shortened(error, 30),
      next: "Later changes of the same objects wait",
    }),
    advice:
      "A dead change failed at every attempt and is not tried again by itself. The later changes of the same object wait " +
      "behind it; all other objects go on. Nothing is lost. Find the cause in the log of the process that ran it " +
      '("a change is dead for a handler"), mend it, and have the changes tried again. Only what must never be handled is ' +
      "skipped: the later changes of its object then go on without it. This message has the commands.",
    facts: [
      { label: "Dead changes", value: atMost(dead, "change") },
      ...(deadSince === null ? [] : [{ label: "Since", value: localTime(deadSince) }]),
      {
        label: "Oldest",
        value: `${seq}: ${kind}, ${resource} ${withoutControls(id)}${error === null ? "" : `, ${error}`}`,
      },
      { label: "Waits behind it", value: atMost(holdsUp, "later change") },
      command("List them", "show", name),
      command("Try all again", "retry", name, "--all"),
      command("Give the oldest up", "skip", name, `--change ${seq}`),
    ],
    storedFacts: { handler: name, seq, kind, resource, id },
    measures: { "dead changes": dead },
    at,
  };
}

/** Failures have paused a handler. Pure. */
export function handlerPausedCondition(
  { name, pausedBy, pausedAt, pauseReason, dead, nextDueAt, oldestDead }: HandlerState,
  { rules, localTime, shortTime, at }: Context,
): Condition | null {
  if (pausedBy !== "failures" || pausedAt === null) return null;
  return {
    key: `${prefixes.paused}${name}`,
    rule: "handler_paused",
    severity: rules.handler_paused.severity,
    title: headlineText({
      lead: `"${shortened(name)}" is paused`,
      cause: "it failed for every object",
      next: `Since ${shortTime(pausedAt)}`,
    }),
    advice:
      "It fails whatever the object is, so look for one cause: what it calls is down, a password has expired, or its last " +
      'change is wrong. The log of the process that runs it has the errors ("a handler failed"). Nothing is lost: all ' +
      "changes wait in their order. One is tried each minute, and the first that succeeds ends the pause and this alert. " +
      'Once the cause is gone, "resume" ends it at once.',
    facts: [
      { label: "Why", value: withoutControls(pauseReason ?? "unknown") },
      { label: "Since", value: localTime(pausedAt) },
      ...(nextDueAt === null || nextDueAt > at
        ? []
        : [{ label: "Oldest change waits since", value: localTime(nextDueAt) }]),
      ...(oldestDead === null ? [] : [{ label: "Dead changes", value: atMost(dead, "change") }]),
      command("List what failed", "show", name),
      command("Resume", "resume", name),
    ],
    storedFacts: { handler: name, pausedAt: pausedAt.toISOString() },
    at,
  };
}

/**
 * A handler has not looked at a change, or not begun one that was due, for long. One that failures have paused is told
 * of as that. Sent again each time its delay has doubled. Pure.
 */
export function handlerBehindCondition(
  { name, pausedBy, pausedAt, pauseReason, unreadSince, nextDueAt }: HandlerState,
  { rules, localTime, shortTime, at }: Context,
): Condition | null {
  if (pausedBy === "failures") return null;
  const times = [unreadSince, nextDueAt].flatMap((time) => (time === null ? [] : [time.getTime()]));
  const oldest = new Date(Math.min(at.getTime(), ...times));
  const delayMs = at.getTime() - oldest.getTime();
  const { severity, afterHours } = rules.handler_behind;
  if (delayMs <= afterHours * hourMs) return null;
  const isPaused = pausedBy === "person" && pausedAt !== null;
  return {
    key: `${prefixes.behind}${name}`,
    rule: "handler_behind",
    severity,
    title: headlineText({
      lead: `"${shortened(name)}" is ${durationText(delayMs)} behind`,
      cause: isPaused ? `a person paused it ${shortTime(pausedAt)}` : "what is due is not begun",
      next: "Nothing is lost",
    }),
    advice: isPaused
      ? "Everything waits in its order until it is resumed. The feed keeps what it has not seen, and grows until then. If " +
        "nobody needs it any more, remove it; that throws away what waits."
      : "No process runs it, or it is slower than its changes come. Check that a process runs that has its code: a worker " +
        'or "npx tallyhook handlers run". A file that was deleted or renamed runs nowhere. One that is only slow needs ' +
        'more "concurrency" or another process. Everything waits in its order; the feed keeps it, and grows until then. ' +
        "If nobody needs it any more, remove it; that throws away what waits.",
    facts: [
      { label: "Oldest change waits since", value: localTime(oldest) },
      ...(isPaused ? [{ label: "Paused", value: localTime(pausedAt) }] : []),
      ...(isPaused ? [{ label: "Why", value: withoutControls(pauseReason ?? "unknown") }] : []),
      command("Show it", "show", name),
      ...(isPaused ? [command("Resume", "resume", name)] : []),
      command("Remove it", "remove", name),
    ],
    storedFacts: { handler: name, since: oldest.toISOString() },
    measures: { hours: Math.floor(delayMs / hourMs) },
    at,
  };
}

const command = (label: string, verb: string, name: string, options = ""): AlertFact => ({
  label,
  value: `npx tallyhook handlers ${verb} ${withoutControls(name)} ${options}`.trimEnd(),
});

/** The ends, by the handler's name. Pure. */
export const handlerEnds = {
  dead: (name) => ({
    title: headlineText({ lead: `No change is dead any more for "${shortened(name)}"` }),
    advice: "All are tried again, or were given up. Nothing is left to do.",
  }),
  paused: (name) => ({
    title: headlineText({ lead: `Failures no longer pause "${shortened(name)}"` }),
    advice:
      'It works again, or a person has resumed, paused or removed it: "npx tallyhook handlers list". What waited follows ' +
      "in its order.",
  }),
  behind: (name) => ({
    title: headlineText({ lead: `"${shortened(name)}" has caught up, or was removed` }),
    advice: "It has begun all that was due, or nothing is kept for it. Nothing is left to do.",
  }),
} satisfies Record<string, (name: string) => End>;

const prefixes = {
  dead: "handler-dead:",
  paused: "handler-paused:",
  behind: "handler-behind:",
};

interface Watched {
  prefix: string;
  conditionOf(handler: HandlerState, context: Context): Condition | null;
  end(name: string): End;
  /** Not told right after a downtime of everything. */
  waits: boolean;
}

const watched: readonly Watched[] = [
  {
    prefix: prefixes.dead,
    conditionOf: handlerDeadCondition,
    end: handlerEnds.dead,
    waits: false,
  },
  {
    prefix: prefixes.paused,
    conditionOf: handlerPausedCondition,
    end: handlerEnds.paused,
    waits: false,
  },
  {
    prefix: prefixes.behind,
    conditionOf: handlerBehindCondition,
    end: handlerEnds.behind,
    waits: true,
  },
];
