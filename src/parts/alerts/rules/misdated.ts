import { findMisdated } from "../../../core/mirror/misdated.ts";
import { tallyhook } from "../../../platform/command-line.ts";
import { moneyText } from "../../../platform/money.ts";
import { counted } from "../../../platform/readable-text.ts";
import { atRiskIn } from "../condition.ts";
import { watch } from "../watch.ts";

const misdatedKey = "misdated";

/**
 * Events or answers show objects that are dated in the future: one alert for all that wait, since one clock is the
 * cause. The transaction that stores such a state raises it; sweeps keep it up to date and end it.
 */
export const misdated = watch({
  rule: "event_future",
  about: "A state is dated more than an hour after it was received. It is kept out of the mirror.",
  severity: "error",
  settings: {},
  read: async (db) => ({ found: await findMisdated(db) }),
  begins({ found }) {
    if (found === null) return null;
    const { objects, amounts, example } = found;
    const { resource, id, datedAt } = example;
    const money = amounts.map(({ currency, amountMinor }) => moneyText(amountMinor, currency));
    return {
      key: misdatedKey,
      title: `${counted(objects, "object is", "objects are")} dated in the future: kept out of the mirror`,
      advice:
        `Usually a clock is wrong: "${tallyhook("doctor")}" compares ours with the service's. Each object was read ` +
        "from the service again, and is every hour. Once the service shows it with a time that can be, it is in " +
        "the mirror, and when that holds for all, this alert ends. If the service keeps showing such times, tell " +
        "its support, and write what else it shows of all of them with " +
        `"${tallyhook("heal misdated --from-service --reason WHY")}".`,
      facts: [
        { label: "Objects", value: String(objects) },
        ...(money.length === 0 ? [] : [{ label: "They show", value: money.join(", ") }]),
        { label: "The first", value: `${resource} ${id}, dated ${datedAt.toISOString()}` },
      ],
      storedFacts: { objects, resource, id, changed_at: datedAt.toISOString() },
      measures: { objects, ...Object.fromEntries(amounts.map((one) => [atRiskIn(one.currency), one.amountMinor])) },
    };
  },
  end: (key) =>
    key === misdatedKey
      ? {
          title: "No object is dated in the future any longer",
          advice: "The mirror has all of them as the service shows them. Nothing is left to do.",
        }
      : // A release before opened one for each object.
        {
          title: "Objects dated in the future are one alert now",
          advice:
            `Those that still wait are in it: "${tallyhook("alerts list")}". It ends by itself when the service ` +
            "shows all of them with plausible times.",
          canWait: true,
        },
  samples: () => ({
    "objects dated in the future": {
      found: {
        objects: 583,
        amounts: [{ currency: "eur", amountMinor: 2_332_000 }],
        example: { resource: "order" as const, id: "sample-order", datedAt: new Date("2036-01-01T00:00:00Z") },
      },
    },
  }),
});
