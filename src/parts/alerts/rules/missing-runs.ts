import type { Answers } from "../../../app/answers.ts";
import { tallyhook } from "../../../platform/command-line.ts";
import { count } from "../setting-schemas.ts";
import { watch } from "../watch.ts";
import { headlineText } from "./wording.ts";

/** No reconciliation for too long, or none at all since watching began. */
export const missingRuns = watch({
  rule: "reconcile_missing",
  about: 'No complete run of reconciliation has begun for "afterHours" hours.',
  severity: "critical",
  settings: { afterHours: count(1, 240, 26) },
  read: async (db, _context, { lastFullAnswerStart }: Pick<Answers, "lastFullAnswerStart">) =>
    lastFullAnswerStart === undefined ? null : { last: await lastFullAnswerStart(db) },
  begins({ last }, { settings, localTime, shortTime, watched: { first }, at }) {
    if (at.getTime() - (last ?? first).getTime() <= settings.afterHours * 3_600_000) return null;
    return {
      key: "silence:reconcile",
      title: headlineText({
        lead:
          last === null
            ? `Never reconciled; workers have run since ${shortTime(first)}`
            : `Not reconciled since ${shortTime(last)}`,
        next: "Reports say INCOMPLETE",
      }),
      advice:
        "Until a run is complete, nothing proves that mirror and service are equal. Check that a worker runs " +
        `("${tallyhook("doctor")}"), then run "${tallyhook("reconcile")}".`,
      facts: [{ label: "Last complete run", value: last === null ? "none" : localTime(last) }],
      storedFacts: { last_run: last?.toISOString() ?? null },
    };
  },
  end: {
    title: "Reconciliation is complete again",
    advice: `"${tallyhook("findings list")}" shows what is open. Nothing else is left to do.`,
  },
  samples: ({ watched: { first } }) => ({ "no reconciliation": { last: first }, "never reconciled": { last: null } }),
});
