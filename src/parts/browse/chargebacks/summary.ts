import { type OpenChargeback, findOpenChargebacks, listOpenKeys } from "../../../core/mirror/chargebacks.ts";
import { readCases } from "../../../app/people/cases.ts";
import { counted, durationText } from "../../../platform/readable-text.ts";
import { sums } from "../../../app/dashboard/elements/values.ts";
import type { Summary } from "../../../app/dashboard/page-group.ts";

/** Further ones are not counted. */
const mostCounted = 1_000;

/** The home card of chargebacks: how many need an answer, and which are unassigned. */
export const chargebackSummary: Summary = {
  access: "status:read",
  async read({ db, serviceClock }) {
    const now = serviceClock.now();
    const found = await listOpenKeys(db, { limit: mostCounted + 1 });
    const isMore = found.length > mostCounted;
    const moreThan = isMore ? "More than " : "";
    const keys = found.slice(0, mostCounted).map(({ key }) => key);
    const open = await findOpenChargebacks(db, keys);
    const cases = await readCases(
      db,
      "chargeback",
      open.map(({ key }) => key),
    );
    const unassigned = open.filter(({ key }) => (cases.get(key)?.assignee ?? null) === null);
    const ageOf = ({ openedAt }: OpenChargeback) => durationText(now.getTime() - openedAt.getTime());
    const [oldest] = open;
    const [waiting] = unassigned;
    return {
      title: "Chargebacks",
      path: "/chargebacks",
      tile: "Money",
      count: isMore ? null : open.length,
      tone: waiting !== undefined ? "bad" : open.length > 0 ? "warn" : "good",
      headline: open.length === 0 ? "None to answer" : `${moreThan}${open.length} to answer`,
      facts:
        oldest === undefined
          ? []
          : [
              {
                name: isMore ? "Disputed, of the oldest" : "Disputed",
                value: sums(open.map(({ amountMinor, currency }) => ({ totalMinor: amountMinor, currency }))),
              },
              { name: "The oldest", value: `open for ${ageOf(oldest)}` },
            ],
      reasons:
        waiting === undefined
          ? []
          : [
              {
                text:
                  `${moreThan}${counted(unassigned.length, "chargeback")} to answer without an assignee: the oldest ` +
                  `is open for ${ageOf(waiting)}.`,
                path: "/chargebacks?who=unassigned",
                next: "Answer",
              },
            ],
    };
  },
};
