import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import type { SentStream } from "./load-generator.ts";

interface Stored {
  events: number;
  repeats: number;
  unapplied: number;
  ignored: number;
  dead: number;
}

/** A receiver counts repeats after it has answered them. */
const countedWithinMs = 10_000;
const pollMs = 50;

/**
 * Compares the inbox with the deliveries answered 200 on its only stream: every event is stored once, every repeat
 * counted, and, where a worker runs, every event applied. Throws if anything differs, since a benchmark that loses
 * events measures nothing. Call it when no event waits.
 */
export async function checkStored(
  client: pg.Client,
  sent: Pick<SentStream, "accepted" | "distinct">,
  { isApplied }: { isApplied: boolean },
): Promise<void> {
  const deadlineMs = performance.now() + countedWithinMs;
  for (;;) {
    const stored = await readStored(client);
    const differences = differencesOf(stored, sent, isApplied);
    if (differences.length === 0) return;
    const mayBeCounted = stored.repeats < sent.accepted - sent.distinct && differences.length === 1;
    if (!mayBeCounted || performance.now() > deadlineMs)
      throw new Error(`what is stored is not what was answered: ${differences.join("; ")}`);
    await sleep(pollMs);
  }
}

function differencesOf(
  { events, repeats, unapplied, ignored, dead }: Stored,
  { accepted, distinct }: Pick<SentStream, "accepted" | "distinct">,
  isApplied: boolean,
): string[] {
  const answeredAgain = accepted - distinct;
  const differences = [
    events === distinct ? null : `${distinct} different events were answered 200, ${events} are in the inbox`,
    repeats === answeredAgain ? null : `${answeredAgain} repeats were answered 200, ${repeats} are counted`,
    isApplied && unapplied > 0 ? `${unapplied} events are not applied` : null,
    isApplied && ignored > 0 ? `${ignored} events are ignored` : null,
    isApplied && dead > 0 ? `${dead} events are dead` : null,
  ];
  return differences.filter((difference) => difference !== null);
}

async function readStored(client: pg.Client): Promise<Stored> {
  const { rows } = await client.query<Stored>(
    `select count(*)::int as events, coalesce(sum(deliveries - 1), 0)::int as repeats,
            count(*) filter (where state in ('received', 'failed'))::int as unapplied,
            count(*) filter (where state = 'ignored')::int as ignored,
            count(*) filter (where state = 'dead')::int as dead
     from inbox.events`,
  );
  return rows[0]!;
}
