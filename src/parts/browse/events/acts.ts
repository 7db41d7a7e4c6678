import type { Knex } from "knex";
import { type Act, ActRefused, type CommandAct, outdated, recordOf } from "../../../app/people/act.ts";
import { flag, listOf, reference, rowNumber, wholeNumber, withDefault } from "../../../app/people/fields.ts";
import { inTransaction } from "../../../platform/postgres/transactions.ts";
import { counted } from "../../../platform/readable-text.ts";
import { listEventsOf, seqsOfIds } from "../../../core/inbox/queries.ts";
import { decidedOnEvents, decidedOnFound } from "../../../core/inbox/replay-search.ts";
import {
  type ReplayedEvent,
  countPrunable,
  listPruned,
  pruneEvents,
  replayEvents,
} from "../../../core/inbox/retention.ts";
import type { EventSearch } from "../../../core/inbox/search-events.ts";

/** What a search found at the door: events without bytes stay as they are. */
export interface FoundEvents {
  filter: EventSearch;
  seqs: readonly number[];
}

interface Replayed {
  seqs: number[];
  /** Number of found events that stayed as they are. */
  left: number;
}

/** A record names at most so many events; of more it has the count. */
const mostRecorded = 200;

/**
 * Events are applied again: those that are named by id or number, each of which must still have its bytes, and those
 * that a search found. One that was named alone is the subject of its record; several are one `events.replayed`. A
 * page's version is `decidedOnEvents` of the named ones, or `decidedOnFound`.
 */
export const replaying: Act<{ db: Knex; found: FoundEvents | null }, { seq: string[] }, Replayed> = {
  name: "event.replayed",
  permission: "event:replay",
  fields: { seq: withDefault(listOf(reference), []) },
  run: ({ db, found }, call) =>
    inTransaction(db, async (trx) => {
      const named = await seqsNamed(trx, call.input.seq);
      if (named.length === 0 && found === null) throw new ActRefused("invalid", "No event was named.");
      const wanted = [...new Set([...named, ...(found?.seqs ?? [])])];
      const seqs = await replayEvents(trx, wanted, (now) => assertAsShown(now, { named, found }, call.decidedOn));
      // Read after the rows are locked, so that an event which a prune has just emptied is noticed too.
      const empty = await listPruned(trx, wanted);
      const refused = empty.filter(({ seq }) => named.includes(seq));
      if (refused.length > 0) throw withoutBytes(refused);
      if (found === null && seqs.length === 1) {
        const subject = { kind: "event", id: String(seqs[0]) };
        await recordOf(replaying, call)(trx, { subject });
      } else if (seqs.length > 0) {
        const after = {
          ...(found === null ? {} : { filter: found.filter, found: found.seqs.length }),
          count: seqs.length,
          ...(seqs.length > mostRecorded ? {} : { seqs }),
        };
        await recordOf({ name: "events.replayed" }, call)(trx, { after });
      }
      return { seqs, left: empty.length };
    }),
};

/** The events with these numbers or ids. Throws `ActRefused` for a name that no event has. Two statements. */
export async function seqsNamed(db: Knex, names: readonly string[]): Promise<number[]> {
  const numbers = names.filter((name) => rowNumber.read(name) !== undefined).map(Number);
  const numbered = new Set((await listEventsOf(db, numbers)).map(({ seq }) => seq));
  const ofIds = await seqsOfIds(db, names);
  const seqs = names.flatMap((name) => {
    const number = rowNumber.read(name);
    if (number !== undefined && numbered.has(number)) return number;
    const ofId = ofIds.get(name);
    if (ofId === undefined) throw noEvent(name);
    return ofId;
  });
  return [...new Set(seqs)];
}

export const noEvent = (given: string | number): ActRefused =>
  new ActRefused("unknown", `There is no event "${given}". Those older than EVENTS_KEEP_DAYS are removed.`);

function assertAsShown(
  now: readonly ReplayedEvent[],
  { named, found }: { named: readonly number[]; found: FoundEvents | null },
  decidedOn: string | null,
): void {
  const there = new Set(now.map(({ seq }) => seq));
  const missing = named.find((seq) => !there.has(seq));
  if (missing !== undefined) throw noEvent(missing);
  if (decidedOn === null) return;
  if (found === null) {
    if (decidedOn === decidedOnEvents(now)) return;
    throw outdated(named.length === 1 ? `Event ${named[0]}` : "One of these events", now);
  }
  const { filter, seqs } = found;
  // They were replayed by another person, or changed by a worker, since they were found.
  const isOther = filter.state !== undefined && now.some(({ state }) => state !== filter.state);
  if (isOther || seqs.length === 0 || decidedOn !== decidedOnFound(seqs)) {
    throw outdated(`The result of this filter (now ${counted(seqs.length, "event")})`);
  }
}

function withoutBytes(events: readonly { seq: number; eventId: string }[]): ActRefused {
  const shown = events.slice(0, 5).map(({ seq, eventId }) => `${eventId} (number ${seq})`);
  const more = events.length > shown.length ? ` and ${events.length - shown.length} more` : "";
  return new ActRefused(
    "hindered",
    `The payloads of ${shown.join(", ")}${more} were pruned and cannot be applied again, so no event was put back.`,
  );
}

const pruneStep = 5_000;

interface Pruning {
  db: Knex;
  begin(total: number): { update(done: number): void; stop(): void };
}

/** The bytes of old events that are applied, stale or ignored are removed, in steps; their rows stay. */
export const pruning: CommandAct<Pruning, { olderThan: number; dryRun: boolean }, { total: number; done: number }> = {
  name: "events.pruned",
  fields: { olderThan: wholeNumber(0, 36_500), dryRun: flag },
  async run({ db, begin }, call) {
    const { olderThan: days, dryRun } = call.input;
    const total = await countPrunable(db, days);
    if (dryRun) return { total, done: 0 };
    const progress = begin(total);
    let done = 0;
    let step: number;
    do {
      // With the first step, so that an interrupted removal is in the record.
      const isFirst = done === 0;
      step = await inTransaction(db, async (trx) => {
        const removed = await pruneEvents(trx, { days, limit: pruneStep });
        if (removed > 0 && isFirst) {
          await recordOf(pruning, call)(trx, { after: { olderThanDays: days, count: total } });
        }
        return removed;
      });
      done += step;
      progress.update(done);
    } while (step > 0);
    progress.stop();
    return { total, done };
  },
};
