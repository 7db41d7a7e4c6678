import { isUtf8 } from "node:buffer";
import type { Command } from "commander";
import type { Knex } from "knex";
import { tallyhook } from "../../../platform/command-line.ts";
import { noEvent, pruning, replaying, type FoundEvents } from "./acts.ts";
import { type EventFilters, eventList, searchOf } from "./event-list.ts";
import { watchArrivals } from "../../../core/inbox/arrivals.ts";
import { type EventState, eventStates } from "../../../core/inbox/claim.ts";
import {
  type EventRow,
  countByState,
  findEvents,
  listEventsOf,
  listOpenEvents,
  seqsOfIds,
} from "../../../core/inbox/queries.ts";
import { type EventSearch, newestEvents } from "../../../core/inbox/search-events.ts";
import { holdsRefusedText } from "../../../core/mirror/canonical.ts";
import { UsageError } from "../../../platform/errors.ts";
import { counted, linesWithoutControls } from "../../../platform/readable-text.ts";
import { flag } from "../../../app/people/fields.ts";
import { type Opened, howMany, print, takeAll, withDatabase } from "../../../app/cli/command.ts";
import { registerAct } from "../../../app/cli/act-command.ts";
import type { CliContext } from "../../../app/cli/context.ts";
import { followSignal, printAsItComes } from "../../../app/cli/follow.ts";
import { createProgress } from "../../../app/cli/progress.ts";
import { type Columns, tableText } from "../../../app/cli/table.ts";

export function registerEvents(program: Command, context: CliContext): void {
  const events = program.command("events");

  registerEventList(events.command("list"), context);

  events
    .command("show")
    .description("show one event with its payload, by its id or its number")
    .argument("<id>", "its id, or its number (seq)")
    .option("--json", "print JSON")
    .action((id: string, { json }: { json?: boolean }) => show(context, id, json === true));

  registerAct(events, context, {
    act: replaying,
    name: "replay",
    description: "apply events again, as at first (safe: a state that is already known changes nothing)",
    takes: { seq: { flags: "[id...]", says: "ids or numbers of events" } },
    by: forTheRecord,
    deps: async ({ db }, { dead }) => ({ db, found: dead === true ? await findDead(db) : null }),
    say({ seqs, left }) {
      if (left > 0) {
        const stay = counted(left, "dead event has", "dead events have");
        context.stderr.write(`tallyhook: ${stay} no stored payload and cannot be applied.\n`);
      }
      return `${counted(seqs.length, "event")} put back; a running worker applies them within seconds.\n`;
    },
    hints: {
      unknown: listHint,
      invalid: "Name events by id or number, or add --dead for all dead ones.",
      hindered: `Name only the others. "${tallyhook("reconcile --full")}" reads from the service what the mirror lacks.`,
    },
  }).option("--dead", "all dead events that still have their payloads");

  registerAct(events, context, {
    act: pruning,
    name: "prune",
    description: "delete the payloads of old events that are applied, stale or ignored; their rows stay",
    takes: {
      olderThan: {
        flags: "--older-than <days>",
        says: "days since they were received, such as 90 or 90d",
        means: (typed) => typed.replace(/d$/, ""),
      },
      dryRun: { flags: "--dry-run", says: "only print how many there are" },
    },
    by: forTheRecord,
    deps: ({ db }) => ({
      db,
      begin: (total) => createProgress(context.stderr, "pruning", total),
    }),
    say: ({ total, done }, { input }) =>
      input.dryRun
        ? `${counted(total, "payload")} would be deleted.\n`
        : `${counted(done, "payload was", "payloads were")} deleted; the rows stay.\n`,
  });
}

const forTheRecord = { who: "script", says: "name of the person who does this, for the audit" } as const;

const listHint = `"${tallyhook("events list")}" shows them.`;

function registerEventList(command: Command, context: CliContext): void {
  const inputOf = takeAll<EventFilters & { limit: number; follow: boolean }>(command, {
    ...eventList.filters,
    limit: howMany(20),
    follow: {
      is: flag,
      flags: "--follow",
      says: "then print each new event until Ctrl-C: as it arrives, or once it has the wanted state or object",
    },
  });
  command
    .description("list the newest events, without their payloads")
    .option("--json", "print JSON: one object, or with --follow one a line")
    .addHelpText("after", `\nStates:\n${stateLines(eventStates)}`)
    .action(async ({ json = false }: { json?: boolean }) => {
      const { limit, follow, ...filters } = inputOf();
      const searched = ({ runtime }: Opened) => ({ search: searchOf(filters, runtime.config.timeZone), limit });
      if (follow) {
        const signal = followSignal(context);
        const lineOf = json ? (row: EventRow) => JSON.stringify(row) : followedLine;
        // `followEvents` itself reports that the database is unreachable.
        const work = (opened: Opened) => followEvents(context, opened, searched(opened), { lineOf, signal });
        return withDatabase(context, "events", work, "silent");
      }
      const { rows, counts } = await withDatabase(context, "events", async (opened) => {
        const { search } = searched(opened);
        return { rows: await newestEvents(opened.db, search, { limit }), counts: await countByState(opened.db) };
      });
      print(
        context,
        command,
        () => listText(rows, counts),
        () => ({ events: rows, counts }),
      );
    });
}

function listText(rows: readonly EventRow[], counts: Readonly<Record<EventState, number>>): string {
  const totals = Object.entries(counts).map(([name, n]) => `${name} ${n}`);
  const shownStates = eventStates.filter((state) => rows.some((row) => row.state === state));
  const legend = rows.length === 0 ? "No event matches.\n" : stateLines(shownStates);
  return `${tableText(columns, rows, ["deliveries"])}${legend}All events: ${totals.join(", ")}.\n`;
}

/** The meaning of each state, and the remedy. */
const stateMeanings: Readonly<Record<EventState, string>> = {
  received: "stored and acknowledged; a worker applies it within moments",
  applied: "it changed the mirror, or ordered a refetch",
  stale: "the mirror knew this state or a later one already; many are normal",
  ignored: "authentic, of a type that changes nothing here",
  failed: "it could not be applied; it is retried automatically",
  dead: `given up; fix the cause, then run "${tallyhook("events replay")}"`,
};

function stateLines(states: readonly EventState[]): string {
  return states.map((state) => `  ${state.padEnd(8)}  ${stateMeanings[state]}\n`).join("");
}

const followedLine = (row: EventRow): string => {
  const texts = [String(row.seq).padStart(8), row.received_at.toISOString(), row.state.padEnd(8)];
  const outside = [(row.type ?? "-").padEnd(28), objectText(row) ?? "-", row.reason ?? ""];
  return [...texts, ...outside.map(linesWithoutControls)].join("  ").trimEnd();
};

const columns: Columns<EventRow> = {
  seq: ({ seq }) => seq,
  received: (row) => row.received_at,
  type: ({ type }) => type?.split("\n") ?? null,
  state: ({ state }) => state,
  resource: (row) => objectText(row)?.split("\n") ?? null,
  deliveries: ({ deliveries }) => deliveries,
  reason: ({ reason }) => (reason ?? "").split("\n"),
};

const objectText = ({ resource_type: type, resource_id: id }: EventRow): string | null =>
  type === null ? null : `${type} ${id ?? "?"}`;

async function show(context: CliContext, id: string, json: boolean): Promise<void> {
  const { found, ofIds } = await withDatabase(context, "events", async ({ db }) => {
    const found = await findEvents(db, id);
    return { found, ofIds: await seqsOfIds(db, [...new Set(found.map((row) => row.event_id))]) };
  });
  if (found.length === 0) throw new UsageError(`${noEvent(id).message} ${listHint}`);
  for (const { raw, ...event } of found) {
    const row = {
      ...event,
      replaced_text: hasReplacedText(raw),
      same_id: otherSeqs(event, ofIds),
    };
    const body = raw === null ? null : raw.toString("utf8");
    if (json) {
      // Only valid UTF-8 survives as text. Other bodies are also shown in base64, so that no bytes are lost.
      const exact = raw === null || isUtf8(raw) ? {} : { raw_base64: raw.toString("base64") };
      context.stdout.write(`${JSON.stringify({ ...row, raw: body, ...exact })}\n`);
      continue;
    }
    for (const [name, value] of Object.entries(row)) {
      const text = printed(value);
      context.stdout.write(`${name.padEnd(18)} ${linesWithoutControls(text)}\n`);
    }
    context.stdout.write(`${body === null ? "(the payload was pruned)" : linesWithoutControls(body)}\n\n`);
  }
}

async function findDead(db: Knex): Promise<FoundEvents> {
  const seqs = await db("inbox.progress").where("state", "dead").pluck<string[]>("seq");
  return { filter: { state: "dead" }, seqs: seqs.map(Number) };
}

function printed(value: string | number | boolean | Date | readonly number[] | null): string {
  if (value instanceof Date) return value.toISOString();
  if (typeof value === "object" && value !== null) return value.length === 0 ? "-" : value.join(", ");
  return String(value ?? "-");
}

/** Events with the same id and different bytes. */
const otherSeqs = ({ seq, event_id }: EventRow, ofIds: ReadonlyMap<string, readonly number[]>): number[] =>
  (ofIds.get(event_id) ?? []).filter((other) => other !== seq);

/** The most events, of the newest, that are read again because they may still match. */
const maxUndecided = 20_000;

/**
 * Prints the newest events, oldest first, and then each new one, one a line, until the signal. With a state or an
 * object in the filter, an event is printed once a worker has given it that state or found its object, also one that
 * was there before. Waits while the database is unreachable, without missing an event: the inbox has them all.
 */
export async function followEvents(
  output: Pick<CliContext, "stdout" | "stderr">,
  { db }: { db: Knex },
  { search, limit }: { search: EventSearch; limit: number },
  { lineOf, signal }: { lineOf: (row: EventRow) => string; signal: AbortSignal },
): Promise<void> {
  const arrivals = await watchArrivals(db);
  // Read before the newest, so that an event completed between the two reads is in one of them.
  const open = await listOpenEvents(db, maxUndecided);
  const newest = (await newestEvents(db, search, { limit })).filter(({ seq }) => arrivals.wasThere(seq));
  const first = newest.toReversed();
  const isPrinted = new Set(newest.map(({ seq }) => seq));
  let undecided = open
    .filter((row) => mayMatchLater(row, search))
    .map(({ seq }) => seq)
    .filter((seq) => arrivals.wasThere(seq) && !isPrinted.has(seq));

  async function look(): Promise<{ rows: EventRow[]; more: boolean }> {
    const came = await arrivals.next();
    undecided = [...undecided, ...came].slice(-maxUndecided);
    const known = await listEventsOf(db, undecided);
    undecided = known.filter((row) => mayMatchLater(row, search)).map(({ seq }) => seq);
    return { rows: known.filter((row) => matches(row, search)), more: came.length > 0 };
  }

  await printAsItComes(output, { first, look, lineOf, signal });
}

const matches = (row: EventRow, { state, type, resourceId }: EventSearch): boolean =>
  (state === undefined || row.state === state) &&
  (type === undefined || row.type === type) &&
  (resourceId === undefined || row.resource_id === resourceId);

/**
 * It does not match yet. A worker will still set the state and the object of an event that is not completed. The type
 * never changes.
 */
const mayMatchLater = (row: EventRow, search: EventSearch): boolean =>
  !matches(row, search) &&
  (search.type === undefined || row.type === search.type) &&
  (row.state === "received" || row.state === "failed");

/**
 * Whether the mirror holds U+FFFD in place of text of this body, because `jsonb` refuses NUL and lone surrogates. Null
 * if the bytes were pruned. False for a body that is not JSON: the mirror has no part of it.
 */
export function hasReplacedText(raw: Buffer | null): boolean | null {
  if (raw === null) return null;
  try {
    return holdsRefusedText(JSON.parse(raw.toString("utf8")));
  } catch {
    return false;
  }
}
