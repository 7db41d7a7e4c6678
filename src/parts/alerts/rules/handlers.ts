import type { Knex } from "knex";
import type { Answers, HandlerHealth } from "../../../app/answers.ts";
import { tallyhook } from "../../../platform/command-line.ts";
import { counted, durationText, withoutControls } from "../../../platform/readable-text.ts";
import type { Begun } from "../condition.ts";
import type { AlertFact } from "../message.ts";
import { count } from "../setting-schemas.ts";
import { type WatchContext, watch } from "../watch.ts";
import { headlineText, shortened } from "./wording.ts";

/** The state of a handler or a destination of forwarding, as far as alerts need it. */
export type HandlerState = Omit<HandlerHealth, "position" | "postponed">;

type HandlerQuestions = Pick<Answers, "handlersHealth" | "destinationOf">;

/** The words of messages for a handler or a destination. */
interface Words {
  /** Used in titles: `"receipts"`, `the destination "crm"`. */
  title: string;
  item: string;
  items: string;
  command(label: string, verb: string, options?: string): AlertFact;
  list: string;
  numberOption: string;
}

const handlerWords = (name: string): Words => ({
  ...commandsOf("handlers", name),
  title: `"${shortened(name)}"`,
  item: "change",
  items: "changes",
  numberOption: "--change",
});

const destinationWords = (name: string): Words => ({
  ...commandsOf("forward", name),
  title: `the destination "${shortened(name)}"`,
  item: "delivery",
  items: "deliveries",
  numberOption: "--number",
});

const commandsOf = (family: string, name: string) => ({
  list: `"${tallyhook(`${family} list`)}"`,
  command: (label: string, verb: string, options = ""): AlertFact => ({
    label,
    value: tallyhook(`${family} ${verb} ${withoutControls(name)} ${options}`).trimEnd(),
  }),
});

type Named = Pick<HandlerQuestions, "destinationOf">;

const isDestination = (name: string, { destinationOf }: Named): boolean => (destinationOf?.(name) ?? null) !== null;

function wordsOf(name: string, { destinationOf }: Named): Words {
  const destination = destinationOf?.(name) ?? null;
  return destination === null ? handlerWords(name) : destinationWords(destination);
}

const capitalized = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

const hourMs = 3_600_000;

/** More are not counted: the watch asks every half minute. */
const mostCounted = 1_000;

const atMost = (n: number, one: string, many?: string): string =>
  n < mostCounted ? counted(n, one, many) : `${mostCounted} or more ${many ?? `${one}s`}`;

const prefixes = {
  dead: "handler-dead:",
  paused: "handler-paused:",
  refused: "handler-refused:",
  behind: "handler-behind:",
};

type Context = WatchContext & Named;

interface Handlers {
  handlers: readonly HandlerState[];
  destinationOf(name: string): string | null;
}

async function read(db: Knex, _context: object, asked: HandlerQuestions): Promise<Handlers | null> {
  const { handlersHealth, destinationOf = () => null } = asked;
  return handlersHealth === undefined
    ? null
    : { handlers: await handlersHealth(db, { most: mostCounted }), destinationOf };
}

/** Changes that failed at their last attempt. Sent again each time their number has doubled. */
export const handlerDead = watch({
  rule: "handler_dead",
  about: "Changes failed at their last attempt for one of your handlers, and hold up the later ones of their objects.",
  severity: "error",
  settings: {},
  read,
  begins: ({ handlers, destinationOf }, context) =>
    handlers.map((handler) => deadOf(handler, { ...context, destinationOf })),
  end(key, named) {
    const { title, item } = wordsOf(key.slice(prefixes.dead.length), named);
    return {
      title: headlineText({ lead: `No ${item} is dead any longer for ${title}` }),
      advice: "All are tried again, or were given up. Nothing is left to do.",
    };
  },
  samples({ at }) {
    const oldestDead = { seq: 4_711, kind: "order.refunded", resource: "order", id: "sample-order", holdsUp: 2 };
    const dead = { dead: 3, deadSince: hoursBefore(at, 1) };
    return {
      "dead changes of a handler": sample({ ...dead, oldestDead: { ...oldestDead, error: "TypeError" } }),
      "dead deliveries of a destination": sample({
        ...destination,
        ...dead,
        oldestDead: { ...oldestDead, error: "crm.example.com answered 500" },
      }),
    };
  },
});

/** Failures, or its own answer, have paused a handler or a destination. */
export const handlerPaused = watch({
  rule: "handler_paused",
  about: "A handler failed for twenty objects in a row, and is paused.",
  severity: "critical",
  settings: {},
  read,
  begins: ({ handlers, destinationOf }, context) =>
    [pausedOf, refusedOf].flatMap((conditionOf) =>
      handlers.map((handler) => conditionOf(handler, { ...context, destinationOf })),
    ),
  end(key, named) {
    if (key.startsWith(prefixes.refused)) {
      const { title, list } = wordsOf(key.slice(prefixes.refused.length), named);
      return {
        title: headlineText({ lead: `A 410 no longer pauses ${title}` }),
        advice: `A person has resumed, paused or removed it: ${list}. Nothing is left to do.`,
      };
    }
    const name = key.slice(prefixes.paused.length);
    const { title, list } = wordsOf(name, named);
    return {
      title: headlineText({ lead: `Failures no longer pause ${title}` }),
      advice: isDestination(name, named)
        ? `It takes deliveries again, or has answered 410, or a person has resumed, paused or removed it: ${list}. ` +
          "The waiting changes run in their order."
        : `It works again, or a person has resumed, paused or removed it: ${list}. The waiting changes run in their order.`,
    };
  },
  samples({ at }) {
    const failed = "It failed for 20 objects in a row, the last time with:";
    const pausedAt = hoursBefore(at, 1);
    const paused = { pausedBy: "failures", pausedAt, nextDueAt: hoursBefore(at, 2) } as const;
    const refused = {
      ...destination,
      pausedBy: "subscriber",
      pausedAt,
      pauseReason: "It wants nothing more: crm.example.com answered 410 Gone.",
    } as const;
    return {
      "a handler paused by failures": sample({ ...paused, pauseReason: `${failed} MailServerError.` }),
      "a destination paused by failures": sample({
        ...destination,
        ...paused,
        pauseReason: `${failed} crm.example.com answered 500.`,
      }),
      "a destination of changes that answered 410": sample(refused),
      "a destination of webhooks that answered 410": sample({ ...refused, source: "webhooks" }),
    };
  },
});

/** A handler or a destination has left due changes waiting for a long time. */
export const handlerBehind = watch({
  rule: "handler_behind",
  about:
    'A handler has not begun due work for "afterHours" hours: no process runs it, it is too slow, or a person paused it.',
  severity: "error",
  settings: { afterHours: count(1, 240, 1) },
  // Right after a downtime of everything, all are behind.
  graceMs: 10 * 60_000,
  read,
  begins: ({ handlers, destinationOf }, context) =>
    handlers.map((handler) => behindOf(handler, { ...context, destinationOf })),
  end(key, named) {
    const name = key.slice(prefixes.behind.length);
    return {
      title: headlineText({ lead: `${capitalized(wordsOf(name, named).title)} has caught up, or was removed` }),
      advice: isDestination(name, named)
        ? "It has begun all that was due, or is reported as paused, or nothing is kept for it. Nothing is left to do."
        : "It has begun all that was due, or nothing is kept for it. Nothing is left to do.",
    };
  },
  samples({ at }) {
    const late = { unreadSince: hoursBefore(at, 2) };
    const moved = {
      pausedBy: "person",
      pausedAt: hoursBefore(at, 20),
      pauseReason: "the mail server moves",
      unreadSince: hoursBefore(at, 19),
    } as const;
    return {
      "a handler behind": sample(late),
      "a handler that a person paused for long": sample(moved),
      "a destination of changes behind": sample({ ...destination, ...late }),
      "a destination of webhooks behind": sample({ ...destination, ...late, source: "webhooks" }),
      "a destination that a person paused for long": sample({ ...destination, ...moved }),
    };
  },
});

const hoursBefore = (at: Date, hours: number): Date => new Date(at.getTime() - hours * hourMs);

const destination = { name: "forward:crm" };

/** A working handler, with the given differences. */
const sample = (state: Partial<HandlerState>): Handlers => ({
  handlers: [
    {
      name: "send-refund-receipt",
      source: "changes",
      pausedBy: null,
      pausedAt: null,
      pauseReason: null,
      dead: 0,
      deadSince: null,
      oldestDead: null,
      unreadSince: null,
      nextDueAt: null,
      ...state,
    },
  ],
  destinationOf: (name) => (name === destination.name ? "crm" : null),
});

/** Changes that failed at their last attempt. Sent again each time their number has doubled. */
function deadOf({ name, dead, deadSince, oldestDead }: HandlerState, { localTime, ...named }: Context): Begun | null {
  if (oldestDead === null) return null;
  const { title, item, items, command, numberOption } = wordsOf(name, named);
  const { seq, kind, resource, id, error, holdsUp } = oldestDead;
  return {
    key: `${prefixes.dead}${name}`,
    title: headlineText({
      lead: `${atMost(dead, `${item} is`, `${items} are`)} dead for ${title}`,
      cause: error === null ? null : shortened(error, 30),
      next: `Later ${items} of the same objects wait`,
    }),
    advice: isDestination(name, named) ? deadDelivery : deadChange,
    facts: [
      { label: `Dead ${items}`, value: atMost(dead, item, items) },
      ...(deadSince === null ? [] : [{ label: "Since", value: localTime(deadSince) }]),
      {
        label: "Oldest",
        value: withoutControls(`${seq}: ${kind}, ${resource} ${id}${error === null ? "" : `, ${error}`}`),
      },
      { label: "Waits behind it", value: atMost(holdsUp, `later ${item}`, `later ${items}`) },
      command("List them", "show"),
      command("Retry all", "retry", "--all"),
      command("Skip the oldest", "skip", `${numberOption} ${seq}`),
    ],
    storedFacts: { handler: name, seq, kind, resource, id },
    measures: { [`dead ${items}`]: dead },
  };
}

const deadChange =
  "A dead change failed at every attempt and is not tried again by itself. The later changes of the same object wait " +
  "behind it; all other objects go on. Nothing is lost. Find the cause in the log of the process that ran it " +
  '("a change is dead for a handler"), fix it, and have the changes tried again. Only what must never be handled is ' +
  "skipped: the later changes of its object then go on without it. This message has the commands.";

const deadDelivery =
  "A dead delivery failed at every attempt for some three days, or can no longer be sent, and is not tried again by " +
  "itself. The later deliveries of the same object wait behind it; all other objects go on. The list has the last " +
  "error of each. Fix the cause, often with whoever runs the subscriber, and have them tried again. Only what must " +
  "never be sent, or no longer can, is skipped: the later deliveries of its object then go on without it.";

/** Failures have paused a handler. */
function pausedOf(
  { name, pausedBy, pausedAt, pauseReason, dead, nextDueAt, oldestDead }: HandlerState,
  { localTime, shortTime, at, ...named }: Context,
): Begun | null {
  if (pausedBy !== "failures" || pausedAt === null) return null;
  const { title, item, items, command } = wordsOf(name, named);
  return {
    key: `${prefixes.paused}${name}`,
    title: headlineText({
      lead: `${capitalized(title)} is paused`,
      cause: "it failed for every object",
      next: `Since ${shortTime(pausedAt)}`,
    }),
    advice: isDestination(name, named) ? failingDestination : failingHandler,
    facts: [
      { label: "Why", value: withoutControls(pauseReason ?? "unknown") },
      { label: "Since", value: localTime(pausedAt) },
      ...(nextDueAt === null || nextDueAt > at
        ? []
        : [{ label: `Oldest ${item} waits since`, value: localTime(nextDueAt) }]),
      ...(oldestDead === null ? [] : [{ label: `Dead ${items}`, value: atMost(dead, item, items) }]),
      command("List what failed", "show"),
      command("Resume", "resume"),
    ],
    storedFacts: { handler: name, pausedAt: pausedAt.toISOString() },
  };
}

const failingHandler =
  "It fails whatever the object is, so look for one cause: what it calls is down, a password has expired, or its " +
  'last change is wrong. The log of the process that runs it has the errors ("a handler failed"). Nothing is lost: ' +
  "all changes wait in their order. One is tried each minute, and the first that succeeds ends the pause and this " +
  'alert. Once the cause is gone, "resume" ends it immediately.';

const failingDestination =
  "It takes nothing, whatever the object is, so look for one cause: the subscriber is down, its address or its " +
  'secret has changed, or it refuses what it is sent. "Why" has the last error, the log of a worker has all. What ' +
  "is to be sent waits in its order. One delivery is tried each minute, and the first that is taken ends the pause " +
  'and this alert. Once the cause is gone, "resume" ends it immediately.';

/**
 * A destination has answered that it accepts no more (410). An alert of its own, since failures may have paused the
 * destination before, and attempts have now stopped entirely.
 */
function refusedOf(
  { name, source, pausedBy, pausedAt, pauseReason }: HandlerState,
  { localTime, shortTime, ...named }: Context,
): Begun | null {
  if (pausedBy !== "subscriber" || pausedAt === null) return null;
  const { title, command } = wordsOf(name, named);
  return {
    key: `${prefixes.refused}${name}`,
    title: headlineText({
      lead: `${capitalized(title)} is paused`,
      cause: "it answered 410 Gone",
      next: `Since ${shortTime(pausedAt)}`,
    }),
    advice:
      "410 says that nothing more is wanted at this address. Nothing is sent or tried there until a person resumes " +
      "it. Ask whoever runs the subscriber. Was it a mistake, or is there a new address (put it into " +
      "FORWARD_SETTINGS_FILE and restart the workers)? Then resume it. If it is no longer wanted, take it out of " +
      `the settings, restart the workers and remove it. Until then ${keptIn[source]}.`,
    facts: [
      { label: "Why", value: withoutControls(pauseReason ?? "unknown") },
      { label: "Since", value: localTime(pausedAt) },
      command("List what waits", "show"),
      command("Resume", "resume"),
      command("Remove it", "remove"),
    ],
    storedFacts: { handler: name, pausedAt: pausedAt.toISOString() },
  };
}

/** The feed keeps changes for its readers, the inbox keeps events for a fixed time. */
const keptIn = {
  changes: "the feed keeps what it has not seen, and grows",
  webhooks: "what is older than EVENTS_KEEP_DAYS is lost to it",
} as const;

/**
 * A handler has not read a change, or not begun a due one, for a long time. One that is paused after failures or by its
 * own answer is reported as paused. Sent again each time its delay has doubled.
 */
function behindOf(
  { name, source, pausedBy, pausedAt, pauseReason, unreadSince, nextDueAt }: HandlerState,
  { settings, localTime, shortTime, at, ...named }: Context & WatchContext<{ afterHours: number }>,
): Begun | null {
  if (pausedBy === "failures" || pausedBy === "subscriber") return null;
  const times = [unreadSince, nextDueAt].flatMap((time) => (time === null ? [] : [time.getTime()]));
  const oldest = new Date(Math.min(at.getTime(), ...times));
  const delayMs = at.getTime() - oldest.getTime();
  if (delayMs <= settings.afterHours * hourMs) return null;
  const isPaused = pausedBy === "person" && pausedAt !== null;
  const { title, item, command } = wordsOf(name, named);
  return {
    key: `${prefixes.behind}${name}`,
    title: headlineText({
      lead: `${capitalized(title)} is ${durationText(delayMs)} behind`,
      cause: isPaused ? `a person paused it ${shortTime(pausedAt)}` : "what is due is not begun",
      next: source === "changes" ? "Nothing is lost" : null,
    }),
    advice: isDestination(name, named)
      ? `${isPaused ? pausedDestination : slowDestination} In the meantime ${keptIn[source]}. ${ifNotNeeded}`
      : isPaused
        ? pausedHandler
        : slowHandler,
    facts: [
      { label: `Oldest ${item} waits since`, value: localTime(oldest) },
      ...(isPaused ? [{ label: "Paused", value: localTime(pausedAt) }] : []),
      ...(isPaused ? [{ label: "Why", value: withoutControls(pauseReason ?? "unknown") }] : []),
      command("Show it", "show"),
      ...(isPaused ? [command("Resume", "resume")] : []),
      command("Remove it", "remove"),
    ],
    storedFacts: { handler: name, since: oldest.toISOString() },
    measures: { hours: Math.floor(delayMs / hourMs) },
  };
}

const pausedHandler =
  "Everything waits in its order until it is resumed. The feed keeps what it has not seen, and grows until then. " +
  "If it is no longer needed, remove it; that throws away what waits.";

const slowHandler =
  "No process runs it, or it is slower than its changes come. Check that a process runs that has its code: a " +
  `worker or "${tallyhook("handlers run")}". A file that was deleted or renamed runs nowhere. One that is only ` +
  'slow needs more "concurrency" or another process. Everything waits in its order; the feed keeps it, and grows ' +
  "until then. If it is no longer needed, remove it; that throws away what waits.";

const pausedDestination = "Everything waits in its order until it is resumed.";

const slowDestination =
  "No worker sends to it, or it takes less than comes. Check that a worker runs with FORWARD_SETTINGS_FILE, and that " +
  "the file has this destination. A subscriber that answers late should answer first and work afterwards; else it " +
  'needs more "concurrency".';

const ifNotNeeded = "If it is no longer needed, remove it; that throws away what waits.";
