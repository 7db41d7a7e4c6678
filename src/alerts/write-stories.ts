import type { Knex } from "knex";
import { announce } from "./announce.ts";
import type { Announcement } from "./announce.ts";
import type { AlertDesk, FoundBy } from "./desk.ts";
import type { PlannedChange } from "./plan-changes.ts";
import type { Story } from "./rules/story.ts";
import { writeAlerts, writeHistory } from "./stored-alerts.ts";
import { holdBack } from "./storm.ts";

/**
 * Makes stored alerts what their stories say, adds to their histories, and queues what is to be said of it. Needs the
 * transaction of the change that the stories tell of. Idempotent: a story that is stored already changes nothing.
 */
export async function writeStories(
  trx: Knex.Transaction,
  desk: AlertDesk,
  planned: readonly PlannedChange[],
  foundBy: FoundBy,
): Promise<void> {
  // What was told is told to its end, though its rule be off by now.
  const wanted = planned.filter(
    ({ story, newStages }) => isEnabled(desk, story) || newStages.length < story.stages.length,
  );
  if (wanted.length === 0) return;
  const ids = await writeAlerts(trx, wanted, foundBy);
  const idOf = ({ key }: Story): number => {
    const id = ids.get(key);
    if (id === undefined) throw new TypeError("an alert was not written");
    return id;
  };
  await writeHistory(
    trx,
    wanted.flatMap(({ story, newStages }) =>
      newStages.map(({ name, change, at }) => ({ alertId: idOf(story), change, stage: name, at })),
    ),
    foundBy,
  );
  const announcements = wanted.flatMap(({ story, occurrence, announced }): Announcement[] =>
    announced === null
      ? []
      : [
          {
            alertId: idOf(story),
            occurrence,
            openedAt: story.stages[0].at,
            story,
            stage: announced,
          },
        ],
  );
  await announce(trx, desk, await holdBack(trx, desk, announcements));
}

/** A story is told if any of its rules is on. */
const isEnabled = ({ settings }: AlertDesk, { stages }: Story): boolean =>
  stages.some(({ change, rule }) => change !== "resolved" && settings.rules[rule].enabled);
