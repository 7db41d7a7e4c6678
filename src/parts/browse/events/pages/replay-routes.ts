import { tallyhook } from "../../../../platform/command-line.ts";
import { replaying } from "../acts.ts";
import { type EventRow, listEventsOf } from "../../../../core/inbox/queries.ts";
import { countStates, decidedOnEvents, findReplayable, mostReplayed } from "../../../../core/inbox/replay-search.ts";
import { type ReplayedEvent, listPruned } from "../../../../core/inbox/retention.ts";
import type { EventSearch } from "../../../../core/inbox/search-events.ts";
import { ActRefused } from "../../../../app/people/act.ts";
import { recordAct } from "../../../../app/people/audit.ts";
import { inTransaction } from "../../../../platform/postgres/transactions.ts";
import { counted } from "../../../../platform/readable-text.ts";
import { pageErrorOf } from "../../../../app/dashboard/act-route.ts";
import { versionOf } from "../../../../app/dashboard/elements/decided-on.ts";
import { type PageDeps, PageError, type PageRequest, type Route } from "../../../../app/dashboard/route.ts";
import { filterNames, filterText, listCommand, readFilter } from "./event-filter.ts";
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

const replayOne: Route = {
  method: "POST",
  path: "/events/:seq/replay",
  access: replaying.permission,
  async answer(deps, request) {
    const { seq } = await requireEvent(deps.db, request.params["seq"] ?? "");
    await putBack(deps, request, { named: [seq], found: null });
    return {
      kind: "redirect",
      to: `/events/${seq}`,
      notice: "Put back. A running worker applies it within seconds.",
    };
  },
};

/** Throws `PageError`, with the events as they are now. */
async function putBack(
  { db, timeZone }: PageDeps,
  { actor, form }: PageRequest,
  input: Parameters<typeof replaying.run>[1]["input"],
) {
  const call = { actor, input, decidedOn: versionOf(form) };
  return replaying.run({ db }, call).catch((error: unknown) => {
    if (!(error instanceof ActRefused)) throw error;
    const now = error.now as ReplayedEvent[] | null;
    throw pageErrorOf(error, now && renderEventNow(now, timeZone));
  });
}

/** Covers all that a page shows, with a reserve. */
const mostChosen = 200;

const confirm: Route = {
  method: "GET",
  path: "/events/replay/confirm",
  access: replaying.permission,
  async answer({ db, clock, timeZone }, { query }) {
    const title = "Replay these events?";
    if (query.get("all") !== "yes") {
      const chosen = await chosenEvents(db, query.getAll("seq"));
      const seqs = chosen.map(({ seq }) => seq);
      const empty = new Set((await listPruned(db, seqs)).map(({ seq }) => seq));
      const events = chosen.filter(({ seq }) => !empty.has(seq));
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
        filter: filterText(search, (at) => at.toISOString()) ?? "",
        fields: filterNames.flatMap((name) => {
          const value = query.get(name) ?? "";
          return value === "" ? [] : [{ name, value }];
        }),
        askedAt: clock.now(),
      }),
      command: listCommand(search),
    };
  },
};

/** An older confirmation no longer describes the filter's results. */
const confirmedWithinMs = 10 * 60_000;

const replayMany: Route = {
  method: "POST",
  path: "/events/replay",
  access: replaying.permission,
  async answer(deps, request) {
    const { db, clock, timeZone } = deps;
    const { form } = request;
    if (form.get("all") !== "yes") {
      const named = chosenSeqs(form.getAll("seq"));
      const { seqs } = await putBack(deps, request, { named, found: null });
      return { kind: "redirect", to: "/events", notice: putBackText(seqs.length, 0) };
    }
    const filter = requireFilter(form, timeZone);
    const age = clock.now().getTime() - Date.parse(form.get("asked-at") ?? "");
    if (!(age >= 0 && age <= confirmedWithinMs)) {
      throw new PageError(
        409,
        "This confirmation is older than ten minutes, so nothing was done. Ask for the events again.",
      );
    }
    const newest = Number(/^\d{1,15}$/.exec(form.get("newest") ?? "")?.[0] ?? "0");
    const { seqs: found } = await findReplayable(db, { ...filter, before: newest + 1 });
    const done = await putBack(deps, request, { named: [], found: { filter, seqs: found } });
    return { kind: "redirect", to: "/events", notice: putBackText(done.seqs.length, done.left) };
  },
};

const putBackText = (done: number, left: number): string =>
  `${counted(done, "event")} put back. A running worker applies them within seconds.` +
  (left > 0 ? ` ${counted(left, "event has", "events have")} no bytes any more and stayed.` : "");

function chosenSeqs(given: readonly string[]): number[] {
  const seqs = given.filter((text) => /^\d{1,15}$/.test(text)).map(Number);
  const chosen = [...new Set(seqs)].sort((a, b) => a - b);
  if (chosen.length === 0) {
    throw new PageError(400, "No event was chosen. Go back, and choose some by their boxes.");
  }
  if (chosen.length > mostChosen) {
    throw new PageError(
      400,
      `At most ${mostChosen} events can be chosen one by one. Use a filter, and replay all that it finds.`,
    );
  }
  return chosen;
}

async function chosenEvents(db: Parameters<typeof listEventsOf>[0], given: readonly string[]): Promise<EventRow[]> {
  const seqs = chosenSeqs(given);
  const events = await listEventsOf(db, seqs);
  if (events.length === seqs.length) return events;
  throw new PageError(404, "One of these events is not there any more. Look at the list again.");
}

/** Throws `PageError` for an unreadable filter, and for an empty one: that would be every event ever. */
function requireFilter(given: URLSearchParams, timeZone: string): EventSearch {
  const { search, problems } = readFilter(given, timeZone);
  if (problems.length > 0) throw new PageError(400, problems.join(" "));
  if (filterText(search, String) === null) {
    throw new PageError(
      400,
      `This page does not put back all events at once. Choose a filter that finds ${mostReplayed} at most.`,
    );
  }
  return search;
}
