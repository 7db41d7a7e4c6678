import { eventStates } from "../../../../core/inbox/claim.ts";
import type { EventSearch } from "../../../../core/inbox/search-events.ts";
import { quoted, tallyhook } from "../../../../platform/command-line.ts";
import { instantsOf } from "../../../../platform/local-time.ts";
import { withoutControls } from "../../../../platform/readable-text.ts";

/** The filters of the list by their names in its address. */
export const filterNames = ["state", "type", "object", "id", "from", "until"] as const;

export interface EventFilter {
  search: EventSearch;
  /** Unreadable parameters, each in a sentence. */
  problems: readonly string[];
}

const longest = 255;

/** Reads the filters of an address. Unreadable ones are reported: a list without them would show other events. */
export function readFilter(query: URLSearchParams, timeZone: string): EventFilter {
  const problems: string[] = [];
  const search: EventSearch = {};
  const text = (name: string): string => query.get(name)?.trim() ?? "";
  const shown = (name: string): string => withoutControls(text(name)).slice(0, 60);

  const state = eventStates.find((known) => known === text("state"));
  if (state !== undefined) search.state = state;
  else if (text("state") !== "") {
    problems.push(`State “${shown("state")}” is none of ${eventStates.join(", ")}.`);
  }
  for (const [name, key, label] of texts) {
    const value = text(name);
    if (value === "") continue;
    // PostgreSQL takes no NUL in a text.
    if (value.length > longest || value.includes("\0")) {
      problems.push(`${label} has at most ${longest} characters, none of them NUL.`);
    } else search[key] = value;
  }
  for (const [name, key, label] of times) {
    if (text(name) === "") continue;
    const at = instantOf(text(name), timeZone);
    if (at !== null) search[key] = at;
    else problems.push(`${label} “${shown(name)}” is not a time such as 2026-11-22T03:41.`);
  }
  const { receivedFrom, receivedUntil } = search;
  if (receivedFrom !== undefined && receivedUntil !== undefined && receivedFrom >= receivedUntil) {
    problems.push("“Received from” is not before “until”, so nothing can match.");
  }
  const before = text("before");
  if (/^\d{1,15}$/.test(before)) search.before = Number(before);
  else if (before !== "") problems.push(`“before=${shown("before")}” is not the number of an event.`);
  return { search, problems };
}

const texts = [
  ["type", "type", "Type"],
  ["object", "resourceId", "Object"],
  ["id", "eventId", "Event id"],
] as const;

const times = [
  ["from", "receivedFrom", "Received from"],
  ["until", "receivedUntil", "Until"],
] as const;

/** A wall clock's minute in a zone, or a moment with its offset; null for anything else. */
function instantOf(text: string, timeZone: string): Date | null {
  const local = /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::\d\d)?)?$/.exec(text);
  if (local === null) {
    const isMoment = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/.test(text);
    return isMoment && !Number.isNaN(Date.parse(text)) ? new Date(text) : null;
  }
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0] = local.slice(1).map((part) => Number(part ?? 0));
  const isReal =
    month >= 1 &&
    month <= 12 &&
    day >= 1 &&
    day <= new Date(Date.UTC(year, month, 0)).getUTCDate() &&
    hour < 24 &&
    minute < 60;
  return isReal ? (instantsOf({ year, month, day, hour, minute }, timeZone)[0] ?? null) : null;
}

/** The command that lists the same; values that a shell would read as something else are quoted. */
export function listCommand({ state, type, resourceId, eventId }: EventSearch): string {
  if (eventId !== undefined) return tallyhook(`events show ${quoted(eventId)}`);
  const options = [
    state === undefined ? "" : ` --state ${state}`,
    type === undefined ? "" : ` --type ${quoted(type)}`,
    resourceId === undefined ? "" : ` --resource ${quoted(resourceId)}`,
  ];
  return tallyhook(`events list${options.join("")}`);
}

/** A search in words; null: everything. */
export function filterText(search: EventSearch, timeText: (at: Date) => string): string | null {
  const { state, type, resourceId, eventId, receivedFrom, receivedUntil } = search;
  const parts = [
    state === undefined ? "" : `state ${state}`,
    type === undefined ? "" : `type ${withoutControls(type)}`,
    resourceId === undefined ? "" : `object ${withoutControls(resourceId)}`,
    eventId === undefined ? "" : `event id ${withoutControls(eventId)}`,
    receivedFrom === undefined ? "" : `received from ${timeText(receivedFrom)}`,
    receivedUntil === undefined ? "" : `received until ${timeText(receivedUntil)}`,
  ].filter((part) => part !== "");
  return parts.length === 0 ? null : parts.join(", ");
}
