import { readInstant } from "../../core/contract/timestamp.ts";
import { before, list } from "../list.ts";
import { readAudit } from "./audit.ts";
import { type Field, optional, reference } from "./fields.ts";

/** A time, or a day in UTC: its beginning, or that of a later day. */
const timeOrDay = (daysLater: number): Field<Date> => ({
  read(typed) {
    const day = readInstant(`${typed}T00:00:00Z`);
    return day === null ? (readInstant(typed) ?? undefined) : new Date(day.getTime() + daysLater * 86_400_000);
  },
  wanted: "a day in UTC such as 2026-03-01, or a time with its offset such as 2026-03-01T12:00:00Z",
});

/** What people did, the newest first. */
export const auditList = list({
  command: "audit list",
  path: "/admin/audit",
  filters: {
    by: {
      is: optional(reference),
      flags: "--by <name>",
      says: "only of this person: an e-mail address, or the name given to a command",
      label: "Who",
    },
    action: {
      is: optional(reference),
      flags: "--action <action>",
      says: "only this, such as event.replayed",
      label: "What",
    },
    kind: {
      is: optional(reference),
      flags: "--kind <kind>",
      says: "only on things of this kind, such as event",
      label: "On a",
    },
    id: { is: optional(reference), flags: "--id <id>", says: "only on things with this id", label: "Its id" },
    from: {
      is: optional(timeOrDay(0)),
      flags: "--since <time>",
      says: "only from this time on, such as 2026-03-01T12:00:00Z, or from this day on (UTC)",
      label: "From day (UTC)",
      type: "date",
    },
    to: {
      is: optional(timeOrDay(1)),
      flags: "--until <time>",
      says: "only before this time, or up to the end of this day (UTC)",
      label: "To day (UTC)",
      type: "date",
    },
    before,
  },
  read: (db, { by: actor, kind, id, from: since, to: until, ...filter }, limit) =>
    readAudit(db, { ...filter, actor, subject: { kind, id }, since, until, limit }),
  keyOf: ({ id }) => id,
});
