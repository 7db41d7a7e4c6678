import { eventStates } from "../../../inbox/claim.ts";
import { type EventFilter, findEvents, listEvents, seqsOfIds } from "../../../inbox/queries.ts";
import { replayEvents } from "../../../inbox/retention.ts";
import { recordAct } from "../../../people/audit.ts";
import { inTransaction } from "../../../platform/postgres/transactions.ts";
import { quoted } from "../../parts/command.ts";
import type { PageGroup } from "../../page-group.ts";
import { pageOf } from "../../parts/paging.ts";
import { PageError, type Route } from "../../route.ts";
import { renderEvent } from "./event-view.ts";
import { renderEvents } from "./list-view.ts";

const pageSize = 50;

const routes: readonly Route[] = [
  {
    method: "GET",
    path: "/events",
    access: "status:read",
    async answer({ db, timeZone }, { query }) {
      const filter = filterOf(query);
      const events = pageOf(
        await listEvents(db, { ...filter, limit: pageSize + 1 }),
        pageSize,
        ({ seq }) => seq,
      );
      return {
        kind: "page",
        title: "Events",
        body: renderEvents({ events, query, timeZone }),
        command: commandOf(filter),
      };
    },
  },
  {
    method: "GET",
    path: "/events/:seq",
    access: "status:read",
    async answer({ db, timeZone }, { params, visitor, actor }) {
      const event = await requireEvent(db, params["seq"] ?? "");
      const showsBytes = visitor.permissions.has("payload:read");
      const subject = { kind: "event", id: String(event.seq) };
      if (showsBytes) {
        await inTransaction(db, (trx) => recordAct(trx, actor, { action: "event.read", subject }));
      }
      const sameId = (await seqsOfIds(db, [event.event_id])).get(event.event_id) ?? [];
      return {
        kind: "page",
        title: `Event ${event.seq}`,
        body: renderEvent({
          event,
          sameId: sameId.filter((seq) => seq !== event.seq),
          showsBytes,
          mayReplay: visitor.permissions.has("event:replay"),
          timeZone,
        }),
        command: `npx tallyhook events show ${event.seq}`,
      };
    },
  },
  {
    method: "POST",
    path: "/events/:seq/replay",
    access: "event:replay",
    async answer({ db }, { params, actor }) {
      const event = await requireEvent(db, params["seq"] ?? "");
      await inTransaction(db, async (trx) => {
        const replayed = await replayEvents(trx, [event.seq]);
        if (replayed.length === 0) {
          throw new PageError(
            409,
            "The bytes of this event were removed, so it cannot be applied again.",
          );
        }
        await recordAct(trx, actor, {
          action: "event.replayed",
          subject: { kind: "event", id: String(event.seq) },
          before: { state: event.state },
        });
      });
      return {
        kind: "redirect",
        to: `/events/${event.seq}`,
        notice: "Put back. A running worker applies it within seconds.",
      };
    },
  },
];

/** What the service announced, and what became of it. */
export const eventPages: PageGroup = {
  place: { path: "/events", name: "Events", access: "status:read" },
  routes,
};

async function requireEvent(db: Parameters<typeof findEvents>[0], seq: string) {
  const found = /^\d{1,15}$/.test(seq) ? await findEvents(db, seq) : [];
  const event = found.find((each) => String(each.seq) === seq);
  if (event !== undefined) return event;
  throw new PageError(
    404,
    `There is no event number ${seq.slice(0, 40)}. Old events are removed (EVENTS_KEEP_DAYS).`,
  );
}

/** What cannot be read in the address is left out: the view then shows more, and the form says what it shows. Pure. */
function filterOf(query: URLSearchParams): Omit<EventFilter, "limit"> {
  const state = eventStates.find((known) => known === query.get("state"));
  const type = query.get("type")?.trim().slice(0, 255) ?? "";
  const resourceId = query.get("object")?.trim().slice(0, 255) ?? "";
  const before = query.get("before") ?? "";
  return {
    ...(state === undefined ? {} : { state }),
    ...(type === "" ? {} : { type }),
    ...(resourceId === "" ? {} : { resourceId }),
    ...(/^\d{1,15}$/.test(before) ? { before: Number(before) } : {}),
  };
}

/** Values that a shell would read as something else are quoted. Pure. */
function commandOf({ state, type, resourceId }: Omit<EventFilter, "limit">): string {
  const options = [
    state === undefined ? "" : ` --state ${state}`,
    type === undefined ? "" : ` --type ${quoted(type)}`,
    resourceId === undefined ? "" : ` --resource ${quoted(resourceId)}`,
  ];
  return `npx tallyhook events list${options.join("")}`;
}
