import type { Knex } from "knex";
import { tallyhook } from "../../../../platform/command-line.ts";
import { type FoundEvents, replaying, seqsNamed } from "../acts.ts";
import { listEventsOf } from "../../../../core/inbox/queries.ts";
import { countStates, decidedOnEvents, findReplayable, mostReplayed } from "../../../../core/inbox/replay-search.ts";
import { type ReplayedEvent, listPruned } from "../../../../core/inbox/retention.ts";
import type { EventSearch } from "../../../../core/inbox/search-events.ts";
import { ActRefused } from "../../../../app/people/act.ts";
import { rowNumber } from "../../../../app/people/fields.ts";
import { recordAct } from "../../../../app/people/audit.ts";
import { inTransaction } from "../../../../platform/postgres/transactions.ts";
import { counted, withoutControls } from "../../../../platform/readable-text.ts";
import { commandFor, filtersIn } from "../../../../app/list.ts";
import { pageErrorOf, actRoute } from "../../../../app/dashboard/act-route.ts";
import { type PageDeps, PageError, type Route } from "../../../../app/dashboard/route.ts";
import { eventList, filtersSet, searchOf } from "../event-list.ts";
import { type EventTools, requireEvent } from "./event-tools.ts";
import { renderEventNow, renderFoundConfirm, renderPreview, renderSelection } from "./replay-views.ts";

/** Replays: one event after a preview, chosen events, and all that a filter finds. */
export const replayRoutes = (tools: EventTools): Route[] => [preview(tools), replayOne, confirm, replayMany];

const preview = (tools: EventTools): Route => ({
  method: "GET",
  path: "/events/:seq/preview",
  access: replaying.permission,
  async answer({ db, timeZone }, { params, visitor, actor }) {
    const event = await requireEvent(db, params["seq"] ?? "");
    const result = await tools.preview(db, event.seq);
    const showsPersons = visitor.permissions.has("person:read");
    const objects = result.kind === "applied" ? result.objects : [];
    if (showsPersons && objects.some(({ changes }) => changes.some((each) => each.isPersonal))) {
      const subject = { kind: "event", id: String(event.seq) };
      const shown = ["personal fields"];
      await inTransaction(db, (trx) => recordAct(trx, actor, { action: "event.read", subject, after: { shown } }));
    }
    return {
      kind: "page",
      title: `Replay event ${event.seq}?`,
      body: renderPreview({
        event,
        version: decidedOnEvents([event]),
        result,
        showsPersons,
        timeZone,
      }),
      command: tallyhook(`events replay ${event.seq}`),
    };
  },
});

const now = (events: unknown, { timeZone }: PageDeps) => renderEventNow(events as ReplayedEvent[], timeZone);

const replayOne = actRoute({
  act: replaying,
  path: "/events/:seq/replay",
  deps: ({ db }) => ({ db, found: null }),
  back: ({ seq }) => `/events/${encodeURIComponent(seq.join())}`,
  now,
  done: ({ seqs }) => ({
    to: `/events/${seqs[0] ?? ""}`,
    notice: "Put back. A running worker applies it within seconds.",
  }),
});

const confirm: Route = {
  method: "GET",
  path: "/events/replay/confirm",
  access: replaying.permission,
  async answer({ db, clock, timeZone }, { query }) {
    const title = "Replay these events?";
    if (query.get("all") !== "yes") {
      const seqs = await chosenSeqs(db, query.getAll("seq"));
      const empty = new Set((await listPruned(db, seqs)).map(({ seq }) => seq));
      const events = (await listEventsOf(db, seqs)).filter(({ seq }) => !empty.has(seq));
      const version = decidedOnEvents(events);
      const body = renderSelection({ events, left: empty.size, version, timeZone });
      const command = tallyhook(`events replay ${events.map(({ seq }) => seq).join(" ")}`);
      return { kind: "page", title, body, command };
    }
    const search = requireFilter(query, timeZone);
    const found = await findReplayable(db, search);
    return {
      kind: "page",
      title,
      body: renderFoundConfirm({
        found,
        states: await countStates(db, found.seqs),
        filter: filterText(search),
        fields: filtersSet(query),
        askedAt: clock.now(),
      }),
      command: commandFor(eventList, query),
    };
  },
};

/** An older confirmation no longer describes the filter's results. */
const confirmedWithinMs = 10 * 60_000;

const replayMany = actRoute({
  act: replaying,
  path: "/events/replay",
  deps: async (deps, { form }) => ({
    db: deps.db,
    found: form.get("all") === "yes" ? await findAll(deps, form) : null,
  }),
  back: () => "/events",
  now,
  done: ({ seqs, left }) => ({ to: "/events", notice: putBackText(seqs.length, left) }),
});

/** What the filter of a confirmation finds, without newer events. Throws `PageError`. */
async function findAll({ db, clock, timeZone }: PageDeps, form: URLSearchParams): Promise<FoundEvents> {
  const filter = requireFilter(form, timeZone);
  const age = clock.now().getTime() - Date.parse(form.get("asked-at") ?? "");
  if (!(age >= 0 && age <= confirmedWithinMs)) {
    throw new PageError(
      409,
      "This confirmation is older than ten minutes, so nothing was done. Ask for the events again.",
    );
  }
  const newest = rowNumber.read(form.get("newest") ?? "") ?? 0;
  return { filter, seqs: (await findReplayable(db, { ...filter, before: newest + 1 })).seqs };
}

const putBackText = (done: number, left: number): string =>
  `${counted(done, "event")} put back. A running worker applies them within seconds.` +
  (left > 0 ? ` ${counted(left, "event has", "events have")} no stored payload and stayed as they are.` : "");

/** Throws `PageError` where none is chosen, and for one that is not there. */
async function chosenSeqs(db: Knex, given: readonly string[]): Promise<number[]> {
  if (given.length === 0) throw new PageError(400, "No event was chosen. Go back, and choose some by their boxes.");
  return seqsNamed(db, given).catch((error: unknown) => {
    throw error instanceof ActRefused ? pageErrorOf(error) : error;
  });
}

/** Throws `PageError` for an unreadable filter, and for an empty one: that would be every event ever. */
function requireFilter(given: URLSearchParams, timeZone: string): EventSearch {
  const { values, problems } = filtersIn(eventList.filters, given);
  if (values === null) throw new PageError(400, Object.values(problems).join(" "));
  if (filtersSet(given).length === 0) {
    throw new PageError(
      400,
      `This page cannot put back all events together. Choose a filter that finds at most ${mostReplayed}.`,
    );
  }
  return searchOf(values, timeZone);
}

/** A search in words. */
function filterText(search: EventSearch): string {
  const { state, type, resourceId, eventId, receivedFrom, receivedUntil } = search;
  const parts = [
    state === undefined ? "" : `state ${state}`,
    type === undefined ? "" : `type ${withoutControls(type)}`,
    resourceId === undefined ? "" : `object ${withoutControls(resourceId)}`,
    eventId === undefined ? "" : `event id ${withoutControls(eventId)}`,
    receivedFrom === undefined ? "" : `received from ${receivedFrom.toISOString()}`,
    receivedUntil === undefined ? "" : `received until ${receivedUntil.toISOString()}`,
  ];
  return parts.filter((part) => part !== "").join(", ");
}
