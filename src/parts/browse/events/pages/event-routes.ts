import type { RaisedAlert } from "../../../../app/answers.ts";
import type { Knex } from "knex";
import { type Change, changesOfCause } from "../../../../core/mirror/changes/read-changes.ts";
import { type EventWork, type StoredEvent, listEventsOf, readWork, seqsOfIds } from "../../../../core/inbox/queries.ts";
import { searchEvents } from "../../../../core/inbox/search-events.ts";
import { recordAct } from "../../../../app/people/audit.ts";
import { tallyhook } from "../../../../platform/command-line.ts";
import { inTransaction } from "../../../../platform/postgres/transactions.ts";
import type { PageGroup } from "../../../../app/dashboard/page-group.ts";
import { commandFor, filtersIn } from "../../../../app/list.ts";
import { pageOf } from "../../../../app/dashboard/elements/paging.ts";
import type { Route } from "../../../../app/dashboard/route.ts";
import { eventList, searchOf } from "../event-list.ts";
import { readEffects } from "./event-effects.ts";
import { type EventTools, requireEvent } from "./event-tools.ts";
import { renderEvent } from "./event-view.ts";
import { renderEvents, renderFilters } from "./list-view.ts";
import { replayRoutes } from "./replay-routes.ts";
import { readEventSummary } from "./summary.ts";

const pageSize = 50;
/** The most events that a page reads for conditions without an index; the next page continues from there. */
const lookThrough = 10_000;

/** The service's events and their outcomes. */
export const eventPages = (tools: EventTools): PageGroup => ({
  place: { path: "/events", name: "Events", access: "status:read", area: "Data" },
  routes: [list, show(tools), ...replayRoutes(tools)],
  summary: { access: "status:read", read: readEventSummary },
});

const list: Route = {
  method: "GET",
  path: eventList.path,
  access: "status:read",
  list: eventList,
  async answer({ db, timeZone }, { query, visitor }) {
    const title = "Events";
    const { values, problems } = filtersIn(eventList.filters, query);
    if (values === null) return { kind: "page", title, status: 400, body: renderFilters(query, timeZone, problems) };
    const found = await searchEvents(db, searchOf(values, timeZone), { limit: pageSize + 1, lookThrough });
    const [stop] = found.stoppedAt === null ? [] : await listEventsOf(db, [found.stoppedAt]);
    return {
      kind: "page",
      title,
      body: renderEvents({
        events: pageOf(found.events, pageSize, ({ seq }) => seq),
        stop: stop ?? null,
        query,
        mayReplay: visitor.permissions.has("event:replay"),
        timeZone,
      }),
      command: commandFor(eventList, query),
    };
  },
};

const show = (tools: EventTools): Route => ({
  method: "GET",
  path: "/events/:seq",
  access: "status:read",
  async answer({ db, clock, timeZone }, { params, visitor, actor }) {
    const event = await requireEvent(db, params["seq"] ?? "");
    const { permissions } = visitor;
    const showsBytes = permissions.has("payload:read");
    const work = (await readWork(db, event.seq)) ?? { objectKnownAt: null, settledAt: null };
    const knownAt = work.objectKnownAt ?? work.settledAt ?? clock.now();
    const effects = await readEffects(db, tools.places, event, knownAt);
    const isPersonal = effects.some(
      ({ verdict, changes }) => verdict !== "known" && changes.some((change) => change.isPersonal),
    );
    const showsPersons = permissions.has("person:read");
    const shown = [...(showsBytes ? ["bytes"] : []), ...(showsPersons && isPersonal ? ["personal fields"] : [])];
    if (shown.length > 0) {
      const subject = { kind: "event", id: String(event.seq) };
      await inTransaction(db, (trx) => recordAct(trx, actor, { action: "event.read", subject, after: { shown } }));
    }
    const sameId = (await seqsOfIds(db, [event.event_id])).get(event.event_id) ?? [];
    return {
      kind: "page",
      title: `Event ${event.seq}`,
      body: renderEvent({
        event,
        work,
        sameId: sameId.filter((seq) => seq !== event.seq),
        effects,
        changes: await changesOf(db, event, work),
        alerts: await alertsOf(db, tools, { event, work, ids: effects.map(({ id }) => id) }),
        showsBytes,
        showsPersons,
        mayReplay: permissions.has("event:replay"),
        timeZone,
      }),
      command: tallyhook(`events show ${event.seq}`),
    };
  },
});

/** The times at which it was first and last applied: a replay has transactions of its own. */
const appliedAt = ({ objectKnownAt, settledAt }: EventWork): Date[] =>
  [objectKnownAt, settledAt].filter(
    (at, n, all): at is Date => at !== null && (n === 0 || at.getTime() !== all[0]?.getTime()),
  );

async function changesOf(db: Knex, { seq }: StoredEvent, work: EventWork): Promise<Change[]> {
  const found = new Map<number, Change>();
  for (const at of appliedAt(work)) {
    for (const change of await changesOfCause(db, `event:${seq}`, at)) {
      found.set(change.seq, change);
    }
  }
  return [...found.values()];
}

async function alertsOf(
  db: Knex,
  { alertsAt }: EventTools,
  { event, work, ids }: { event: StoredEvent; work: EventWork; ids: readonly string[] },
): Promise<readonly RaisedAlert[] | null> {
  if (alertsAt === null) return null;
  const all = [...new Set([...ids, ...(event.resource_id === null ? [] : [event.resource_id])])];
  const told = await Promise.all(appliedAt(work).map((at) => alertsAt(db, at, { ids: all, eventId: event.event_id })));
  return told.flat();
}
