import { eventStates } from "../../../core/inbox/claim.ts";
import type { EventSearch } from "../../../core/inbox/search-events.ts";
import { readInstant } from "../../../core/contract/timestamp.ts";
import { type Filtered, before } from "../../../app/list.ts";
import { type Field, oneOf, optional, reference } from "../../../app/people/fields.ts";
import { type LocalMinute, instantsOf } from "../../../platform/local-time.ts";

/** A moment with its offset, or a minute of the wall clock of the deployment's zone. */
const moment: Field<Date | LocalMinute> = {
  read(typed) {
    const [, day = "", time = "00:00"] = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(?::\d\d)?)?$/.exec(typed) ?? [];
    const wall = readInstant(`${day}T${time}:00Z`);
    if (wall === null) return readInstant(typed) ?? undefined;
    return {
      year: wall.getUTCFullYear(),
      month: wall.getUTCMonth() + 1,
      day: wall.getUTCDate(),
      hour: wall.getUTCHours(),
      minute: wall.getUTCMinutes(),
    };
  },
  wanted: "a time such as 2026-11-22T03:41 (in TALLYHOOK_TIME_ZONE) or 2026-11-22T03:41:00Z",
};

export interface EventFilters {
  state: EventSearch["state"] | null;
  type: string | null;
  object: string | null;
  id: string | null;
  from: Date | LocalMinute | null;
  until: Date | LocalMinute | null;
  before: number | null;
}

/**
 * The newest events first. Its doors are made by hand: the command can follow, the page is live, stops at what it may
 * read, and replays.
 */
export const eventList: Filtered<EventFilters> = {
  // A page has 50, the command without an option 20.
  command: "events list --limit 50",
  path: "/events",
  filters: {
    state: {
      is: optional(oneOf(eventStates)),
      flags: "--state <state>",
      says: `one of ${eventStates.join(", ")}`,
      label: "State",
      unset: "all",
    },
    type: {
      is: optional(reference),
      flags: "--type <type>",
      says: "only of this type, such as order.succeeded",
      label: "Type",
      unset: "order.paid",
    },
    object: {
      is: optional(reference),
      flags: "--resource <id>",
      says: "only about the object with this id",
      label: "Object",
      unset: "503dbd2b-a762-…",
    },
    id: {
      is: optional(reference),
      flags: "--id <id>",
      says: "only with this event id",
      conflicts: "follow",
      label: "Event id",
      unset: "evt_…",
    },
    from: {
      is: optional(moment),
      flags: "--from <time>",
      says: "only received from this time on, such as 2026-11-22T03:41 or 2026-11-22T03:41:00Z",
      conflicts: "follow",
      label: "Received from",
      type: "datetime-local",
    },
    until: {
      is: optional(moment),
      flags: "--until <time>",
      says: "only received before this time",
      conflicts: "follow",
      label: "Until",
      type: "datetime-local",
    },
    before: { ...before, conflicts: "follow" },
  },
};

/** Those by which fewer events are found. */
const narrowing = ["state", "type", "object", "id", "from", "until"] as const;

/** What is set of them, by name. */
export const filtersSet = (query: URLSearchParams): { name: string; value: string }[] =>
  narrowing.flatMap((name) => {
    const value = query.get(name)?.trim() ?? "";
    return value === "" ? [] : [{ name, value }];
  });

/** The search of these filters; wall-clock times are of this zone. */
export function searchOf({ state, type, object, id, from, until, before: seq }: EventFilters, timeZone: string) {
  const instantOf = (at: Date | LocalMinute) => (at instanceof Date ? at : instantsOf(at, timeZone)[0]);
  const [receivedFrom, receivedUntil] = [from && instantOf(from), until && instantOf(until)];
  const search: EventSearch = {
    ...(state && { state }),
    ...(type !== null && { type }),
    ...(object !== null && { resourceId: object }),
    ...(id !== null && { eventId: id }),
    ...(receivedFrom && { receivedFrom }),
    ...(receivedUntil && { receivedUntil }),
    ...(seq !== null && { before: seq }),
  };
  return search;
}
