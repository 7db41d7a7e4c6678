import { quoted, tallyhook } from "../../../../platform/command-line.ts";
import { type AuditQuery, readAudit } from "../../../people/audit.ts";
import { pageOf } from "../../elements/paging.ts";
import { PageError, type Route } from "../../route.ts";
import { renderAudit } from "./audit-view.ts";

const pageSize = 50;

export const auditRoutes: readonly Route[] = [
  {
    method: "GET",
    path: "/admin/audit",
    access: "audit:read",
    async answer({ db, timeZone }, { query, visitor }) {
      const filter = filterOf(query);
      const rows = await readAudit(db, { ...filter, limit: pageSize + 1 });
      const acts = pageOf(rows, pageSize, ({ id }) => id);
      return {
        kind: "page",
        title: "Audit",
        body: renderAudit({ acts, query, visitor, timeZone }),
        command: commandOf(filter),
      };
    },
  },
];

/** Builds the filter; empty fields are ignored. Throws `PageError` for an invalid time. */
function filterOf(query: URLSearchParams): Omit<AuditQuery, "limit"> {
  const text = (name: string): string | undefined => query.get(name)?.trim() || undefined;
  const [kind, id, before] = [text("kind"), text("id"), text("before")];
  return {
    actor: text("by"),
    action: text("action"),
    subject: kind === undefined ? undefined : { kind, id },
    since: dayOf(text("from"), 0),
    until: dayOf(text("to"), 1),
    before: before !== undefined && /^\d{1,15}$/.test(before) ? Number(before) : undefined,
  };
}

/** The beginning of a day in UTC, or of one so many days later. */
function dayOf(text: string | undefined, later: number): Date | undefined {
  if (text === undefined) return undefined;
  const at = /^\d{4}-\d{2}-\d{2}$/.test(text) ? Date.parse(`${text}T00:00:00Z`) : Number.NaN;
  if (Number.isNaN(at)) throw new PageError(400, "A day is written as 2026-11-22.");
  return new Date(at + later * 86_400_000);
}

function commandOf({ actor, action, subject, since }: Omit<AuditQuery, "limit">): string {
  const about =
    subject === undefined ? undefined : [subject.kind, ...(subject.id === undefined ? [] : [subject.id])].join(":");
  const options = { by: actor, action, subject: about, since: since?.toISOString() };
  const given = Object.entries(options).flatMap(([name, value]) =>
    value === undefined ? [] : [`--${name} ${quoted(value)}`],
  );
  return [tallyhook("audit list"), ...given].join(" ");
}
