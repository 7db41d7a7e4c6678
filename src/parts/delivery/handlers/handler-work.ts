import type { Knex } from "knex";
import { type AttemptDeps, attemptRun, idempotencyKeyOf } from "../dispatch/attempt.ts";
import type { Handler } from "../dispatch/define-handler.ts";
import { changeOf, eventSeqOf, feedSource } from "../dispatch/feed-source.ts";
import { readObjects } from "../dispatch/read-objects.ts";
import type { Work } from "../dispatch/recipient.ts";

/** Handlers run on changes, each with the object as the change left it. @param deps `db` reads the objects */
export const handlerWork = (deps: AttemptDeps & { db: Knex }): Work<Handler> => ({
  sourceOf: ({ name, on, includeImport }) => feedSource({ name, kinds: on, includeImport }),
  async prepare(claimed) {
    const changes = claimed.map(({ run }) => changeOf(run));
    const objects = await readObjects(deps.db, changes);
    return claimed.map(({ recipient, run }, n) => ({
      removesRun: recipient.transactional,
      eventSeq: eventSeqOf(run),
      make(removeRun) {
        const change = changeOf(run);
        const idempotencyKey = idempotencyKeyOf(recipient.name, change);
        const attempt = { change, object: objects[n] ?? null, idempotencyKey, isTest: false };
        return attemptRun(deps, recipient, attempt, removeRun);
      },
    }));
  },
});
