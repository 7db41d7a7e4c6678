import type { Knex } from "knex";
import { type Act, ActRefused, type ActSubject, actOn, outdated, recordOf } from "../../../app/people/act.ts";
import { type Field, flag, optional, reference, rowNumber, text } from "../../../app/people/fields.ts";
import { shortLine } from "../../../platform/free-text.ts";
import { inTransaction } from "../../../platform/postgres/transactions.ts";
import {
  type HandlerRemains,
  type LockedHandler,
  changeBefore,
  handlerNames,
  lockHandler,
  mostCounted,
  pauseHandler,
  readRemains,
  removeHandler,
  resumeHandler,
  retryRuns,
  skipRun,
} from "./manage-handlers.ts";
import { type DeadRuns, type OpenRunRow, lockRun, readDead } from "./open-runs.ts";

/** A recipient's name for people: all kinds but handlers have the kind and a colon in front. */
const calledName = (recipient: string): string => recipient.slice(recipient.indexOf(":") + 1);

export const noRecipient = (recipient: string): ActRefused =>
  new ActRefused("unknown", `Nothing called "${calledName(recipient)}" has run on this database.`);

/** A handler or a destination, by the name under which the dispatch knows it. */
export const recipientSubject: ActSubject<LockedHandler> = {
  kind: "handler",
  async lock(trx, given) {
    const found = await lockHandler(trx, given);
    if (found === null) throw noRecipient(given);
    return found;
  },
  idOf: ({ name }) => name,
  version: ({ paused_by: by, paused_at: at }) => (by === null ? "on" : `${by} ${at?.toISOString()}`),
};

const subjectOf = (recipient: string) => ({ kind: recipientSubject.kind, id: recipient });

const recipientField: Field<string> = { ...reference, wanted: "a name as the list shows it" };

/** It starts no more runs until it is resumed. The reason is not in the record, since it is free text. */
export const pausing = actOn(recipientSubject, "recipient", {
  name: "handler.paused",
  permission: "handler:write",
  fields: { recipient: recipientField, reason: text(shortLine) },
  async change(trx, { name, paused_by: pausedBy }, { input }) {
    await pauseHandler(trx, name, input.reason);
    return { done: null, record: { before: { pausedBy }, after: { pausedBy: "person" } } };
  },
});

/** It continues, after a pause of any origin, and immediately retries failed runs. */
export const resuming = actOn(recipientSubject, "recipient", {
  name: "handler.resumed",
  permission: "handler:write",
  fields: { recipient: recipientField },
  async change(trx, { name, paused_by: pausedBy }) {
    await resumeHandler(trx, name);
    return { done: null, record: { before: { pausedBy }, after: { pausedBy: null } } };
  },
});

/** One run, or all that are dead, get a new set of attempts. */
export const retrying: Act<
  { db: Knex },
  { recipient: string; seq: number | null; all: boolean },
  { runs: number; isPaused: boolean }
> = {
  name: "handler.retried",
  permission: "handler:write",
  fields: { recipient: recipientField, seq: optional(rowNumber), all: flag },
  async run({ db }, call) {
    const { recipient, seq, all } = call.input;
    if ((seq === null) !== all) {
      throw new ActRefused("invalid", "Name one number, or all that are dead.");
    }
    return inTransaction(db, async (trx) => {
      const known = (await handlerNames(trx)).find(({ name }) => name === recipient);
      if (known === undefined) throw noRecipient(recipient);
      const record = recordOf(retrying, call);
      const subject = subjectOf(recipient);
      const isPaused = known.paused_by !== null;
      if (seq !== null) {
        const run = await requireRun(trx, recipient, seq, call.decidedOn);
        if ((await retryRuns(trx, recipient, { seq })) === 0) throw await held(trx, recipient, run);
        await record(trx, { subject, before: runFacts(run) });
        return { runs: 1, isPaused };
      }
      await assertDead(trx, recipient, call.decidedOn);
      const runs = await retryRuns(trx, recipient, { state: "dead" });
      if (runs > 0) await record(trx, { subject, after: { runs } });
      return { runs, isPaused };
    });
  },
};

/** One run is skipped permanently, so that later ones of its object continue. */
export const skipping: Act<{ db: Knex }, { recipient: string; seq: number }, null> = {
  name: "handler.skipped",
  permission: "handler:write",
  fields: { recipient: recipientField, seq: rowNumber },
  run: ({ db }, call) =>
    inTransaction(db, async (trx) => {
      const { recipient, seq } = call.input;
      const run = await requireRun(trx, recipient, seq, call.decidedOn);
      if (!(await skipRun(trx, recipient, seq))) throw await held(trx, recipient, run);
      const subject = subjectOf(recipient);
      await recordOf(skipping, call)(trx, { subject, before: runFacts(run) });
      return null;
    }),
};

/** The version for retrying and skipping a run. */
export const versionOfRun = ({
  state,
  attempts,
  failed_at: at,
}: Pick<OpenRunRow, "state" | "attempts" | "failed_at">): string => `${state} ${attempts} ${at?.toISOString() ?? "-"}`;

/** The version for retrying all dead runs. */
export const versionOfDead = ({ count, newest }: DeadRuns): string => `${count} ${newest ?? "-"}`;

const runFacts = ({ seq, kind, resource, id, state, attempts }: OpenRunRow) => ({
  seq,
  kind,
  resource,
  id,
  state,
  attempts,
});

/** The run, locked, where it is as it was shown. */
async function requireRun(
  trx: Knex.Transaction,
  recipient: string,
  seq: number,
  decidedOn: string | null,
): Promise<OpenRunRow> {
  const run = await lockRun(trx, recipient, seq);
  if (run === null) {
    const isKnown = (await handlerNames(trx)).some(({ name }) => name === recipient);
    if (!isKnown) throw noRecipient(recipient);
    throw new ActRefused(
      "unknown",
      `${calledName(recipient)} has no pending number ${seq}: it is done, skipped, or not among its kinds.`,
    );
  }
  if (decidedOn !== null && decidedOn !== versionOfRun(run)) throw outdated(`Number ${seq}`, run);
  return run;
}

async function assertDead(trx: Knex.Transaction, recipient: string, decidedOn: string | null): Promise<void> {
  if (decidedOn === null) return;
  const dead = await readDead(trx, recipient, { most: mostCounted });
  if (decidedOn !== versionOfDead(dead)) throw outdated("The list of dead changes", dead);
}

/** The obstacle to retrying or skipping a run. */
async function held(trx: Knex.Transaction, recipient: string, run: OpenRunRow): Promise<ActRefused> {
  const before = await changeBefore(trx, recipient, run);
  return new ActRefused(
    "hindered",
    before === null
      ? `${calledName(recipient)} runs number ${run.seq} now. Try again once that has ended.`
      : `Number ${run.seq} waits behind number ${before} of the same object. Retry or skip that one first.`,
  );
}

/**
 * Its place is forgotten, and so are its waiting runs. A process that still has it starts it again at its next start.
 */
export const removing: Act<{ db: Knex }, { recipient: string }, null> = {
  name: "handler.removed",
  permission: "handler:write",
  fields: { recipient: recipientField },
  run: ({ db }, call) =>
    inTransaction(db, async (trx) => {
      const { recipient } = call.input;
      const { waiting, dead } = await requireRemains(trx, recipient);
      await removeHandler(trx, recipient);
      const subject = subjectOf(recipient);
      await recordOf(removing, call)(trx, { subject, before: { waiting, dead } });
      return null;
    }),
};

/** The remains that would be deleted. Throws `ActRefused` where there are none, and while a process works on it. */
export async function requireRemains(db: Knex, recipient: string): Promise<HandlerRemains> {
  const remains = await readRemains(db, recipient);
  if (remains === null) throw noRecipient(recipient);
  if (remains.runningUntil === null) return remains;
  const until = remains.runningUntil.toISOString();
  throw new ActRefused("hindered", `A process runs ${calledName(recipient)} now, until ${until} at most.`);
}
