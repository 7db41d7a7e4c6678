import pc from "picocolors";
import type { CompletedEvent } from "../../core/inbox/claim.ts";
import type { Change } from "../../core/mirror/changes/read-changes.ts";
import { type Clock, wallClock } from "../../platform/clock.ts";
import { moneyText } from "../../platform/money.ts";
import { oneLine } from "../../platform/readable-text.ts";
import { redactSecrets } from "../../platform/redaction.ts";
import { displayWidth, padded, shortenedMiddle } from "./display-width.ts";
import { screenWidth } from "./screen.ts";

/** One line for a person: what it is about, and what became of it. */
export interface LiveLine {
  kind: "event" | "change" | "alert" | "log" | "warn" | "error";
  object: string;
  fate: string;
}

/** What a process does, for the person who started it on a terminal. */
export interface LiveScreen {
  /** Takes the lines of the log, which are JSON, and those of alerts. */
  write(line: string): void;
  /** Says what became of events, once that is committed. */
  events(completed: readonly CompletedEvent[]): void;
  /** `more`: changes beside these that were not read. */
  changes(changes: readonly Change[], more: number): void;
  /** Says how much was left out. */
  close(): void;
}

/** The lines of each kind that a second may have. A person reads no more, and a receiver must not wait for a terminal. */
export const linesInASecond = 10;
/** A terminal that was stopped (Ctrl-S) takes nothing: what waits for it is bounded. */
const maxWaitingBytes = 256 * 1024;

const many: Readonly<Record<LiveLine["kind"], string>> = {
  event: "events",
  change: "changes",
  alert: "alerts",
  log: "notices",
  warn: "warnings",
  error: "errors",
};

const colours: Readonly<Record<LiveLine["kind"], (text: string) => string>> = {
  event: pc.cyan,
  change: pc.green,
  alert: pc.magenta,
  log: pc.dim,
  warn: pc.yellow,
  error: pc.red,
};

/** Prints at most `linesInASecond` lines of each kind, and how many more there were. Never throws and never waits. */
export function createLiveScreen(out: NodeJS.WriteStream, clock: Clock = wallClock): LiveScreen {
  const shown = new Map<LiveLine["kind"], number>();
  const leftOut = new Map<LiveLine["kind"], number>();
  let second: NodeJS.Timeout | undefined;

  function print(line: LiveLine): void {
    out.write(`${lineText(line, clock.now(), screenWidth(out))}\n`);
  }

  function endSecond(): void {
    clearTimeout(second);
    second = undefined;
    shown.clear();
    for (const [kind, n] of leftOut) {
      print({
        kind,
        object: "",
        fate: `${n} more ${n === 1 ? many[kind].slice(0, -1) : many[kind]} in the last second`,
      });
    }
    leftOut.clear();
  }

  /** `lineOf` is called for what is shown only. */
  function take(kind: LiveLine["kind"], lineOf: () => LiveLine): void {
    second ??= setTimeout(endSecond, 1_000).unref();
    const n = shown.get(kind) ?? 0;
    if (n >= linesInASecond || out.writableLength > maxWaitingBytes) skip(kind, 1);
    else {
      shown.set(kind, n + 1);
      print(lineOf());
    }
  }

  const skip = (kind: LiveLine["kind"], n: number): void => void leftOut.set(kind, (leftOut.get(kind) ?? 0) + n);

  return {
    write(line) {
      const read = lineOfLog(line);
      if (read !== null) take(read.kind, () => read);
    },
    events(completed) {
      for (const event of completed) take("event", () => lineOfEvent(event));
    },
    changes(changes, more) {
      for (const change of changes) take("change", () => lineOfChange(change));
      if (more > 0) {
        second ??= setTimeout(endSecond, 1_000).unref();
        skip("change", more);
      }
    },
    close: endSecond,
  };
}

const kindWidth = 6;
const objectWidth = 30;
/** On a narrower terminal a line has no columns. */
const shortestFate = 16;

/** The time in UTC, the kind, the object and its fate, in at most `width` places and without control characters. */
export function lineText({ kind, object, fate }: LiveLine, at: Date, width: number): string {
  const clean = (text: string): string => oneLine(redactSecrets(text), 500);
  const time = `${at.toISOString().slice(11, 19)}Z`;
  const named = object === "" ? "" : `${padded(shortenedMiddle(clean(object), objectWidth), objectWidth)}  `;
  const room = width - displayWidth(`${time}  ${padded(kind, kindWidth)}  ${named}`);
  if (room < shortestFate) return shortenedMiddle(`${time} ${kind} ${clean(object)} ${clean(fate)}`, width);
  return `${pc.dim(time)}  ${colours[kind](padded(kind, kindWidth))}  ${named}${shortenedMiddle(clean(fate), room)}`.trimEnd();
}

/** A kind and the ends of an id: enough to recognise, and to find it by in `events list`. */
const objectText = (resource: string | null, id: string | null): string =>
  resource === null ? "" : `${resource} ${shortenedMiddle(oneLine(id ?? "?", 500), 16)}`;

const lineOfEvent = ({ seq, state, reason, resourceType, resourceId }: CompletedEvent): LiveLine => ({
  kind: "event",
  object: objectText(resourceType, resourceId) || "no object",
  fate: `#${seq} ${state}${reason === null ? "" : `: ${reason}`}`,
});

function lineOfChange({ kind, resource, id, fromStatus, toStatus, amount, currency }: Change): LiveLine {
  const status =
    fromStatus === toStatus || fromStatus === null ? (toStatus ?? "") : `${fromStatus} → ${toStatus ?? "-"}`;
  const money = amount === null && currency === null ? "" : moneyText(amount, currency);
  return {
    kind: "change",
    object: objectText(resource, id),
    fate: [kind, status, money].filter((part) => part !== "").join("  "),
  };
}

/** Facts of log lines that tell what they are about. Only numbers and words of our own are among them. */
const shownFacts = [
  "run",
  "kind",
  "rule",
  "stage",
  "action",
  "seq",
  "events",
  "backend",
  "handlers",
  "reason",
] as const;

/** Null: the line says what another one on the screen says already. */
function lineOfLog(line: string): LiveLine | null {
  let fields: Record<string, unknown>;
  try {
    fields = JSON.parse(line) as Record<string, unknown>;
  } catch {
    return { kind: "log", object: "", fate: line };
  }
  const { alert, level, msg, err } = fields;
  if (typeof alert === "object" && alert !== null) {
    const { title, severity, action } = alert as Record<string, unknown>;
    return { kind: "alert", object: "", fate: [severity, action, title].filter(isText).join("  ") };
  }
  if (msg === "an alert was sent") return null;
  const facts = shownFacts.flatMap((name) => {
    const value = fields[name];
    return isText(value) || typeof value === "number" ? [`${name} ${value}`] : [];
  });
  const message = typeof err === "object" && err !== null ? (err as { message?: unknown }).message : undefined;
  const fate = [isText(msg) ? msg : "", facts.join(", "), isText(message) ? message : ""]
    .filter((part) => part !== "")
    .join(": ");
  const kind = level === "warn" ? "warn" : level === "error" || level === "fatal" ? "error" : "log";
  return { kind, object: "", fate };
}

const isText = (value: unknown): value is string => typeof value === "string" && value !== "";
