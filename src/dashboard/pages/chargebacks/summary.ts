import { type Chargeback, listChargebacks } from "../../../mirror/chargebacks.ts";
import { readCases } from "../../../people/cases.ts";
import { counted, durationText } from "../../../platform/readable-text.ts";
import { sums } from "../../parts/sums.ts";
import type { Summary } from "../../page-group.ts";

/** What home says of chargebacks: how many are to answer, and which nobody has. */
export const chargebackSummary: Summary = {
  access: "status:read",
  async read({ db, serviceClock }) {
    const now = serviceClock.now();
    const open = await listChargebacks(db, { endedSince: "open alone", limit: 2_000 });
    const cases = await readCases(
      db,
      "chargeback",
      open.map(({ key }) => key),
    );
    const unassigned = open.filter(({ key }) => (cases.get(key)?.assignee ?? null) === null);
    const ageOf = ({ openedAt }: Chargeback) => durationText(now.getTime() - openedAt.getTime());
    const [oldest] = open;
    const [waiting] = unassigned;
    return {
      title: "Chargebacks",
      path: "/chargebacks",
      tone: waiting !== undefined ? "bad" : open.length > 0 ? "warn" : "good",
      headline: open.length === 0 ? "None to answer" : `${open.length} to answer`,
      facts:
        oldest === undefined
          ? []
          : [
              {
                name: "Disputed",
                value: sums(
                  open.map(({ amountMinor, currency }) => ({ totalMinor: amountMinor, currency })),
                ),
              },
              { name: "The oldest", value: `open for ${ageOf(oldest)}` },
            ],
      reasons:
        waiting === undefined
          ? []
          : [
              `${counted(unassigned.length, "chargeback")} to answer with nobody looking after it: the oldest is open for ${ageOf(waiting)}.`,
            ],
    };
  },
};
