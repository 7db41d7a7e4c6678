import type { Knex } from "knex";
import { tallyhook } from "../../../platform/command-line.ts";
import { mostSilencesListed, silencing, unsilencing } from "../acts.ts";
import { type AlertSettings, ruleNames } from "../settings.ts";
import { type SilenceRow, listSilences } from "../silences.ts";
import { recordAct } from "../../../app/people/audit.ts";
import type { Clock } from "../../../platform/clock.ts";
import { type Html, html } from "../../../platform/html.ts";
import { inTransaction } from "../../../platform/postgres/transactions.ts";
import { actRoute } from "../../../app/dashboard/act-route.ts";
import { time } from "../../../app/dashboard/elements/values.ts";
import type { PageDeps, Route } from "../../../app/dashboard/route.ts";
import { sightOf } from "./alert-words.ts";
import { renderSilencesPage } from "./silence-view.ts";

/** Dependencies of acts on alerts, on the dashboard's pool. */
export type AlertActDeps = (deps: PageDeps) => {
  db: Knex;
  clock: Clock;
  settings: () => AlertSettings;
};

const silencesPath = "/alerts/silences";

/** Silences: which there are, of an alert, of a rule, and their early end. `now` shows an alert as it is. */
export const silenceRoutes = ({
  deps,
  now,
}: {
  deps: AlertActDeps;
  now: (now: unknown, deps: PageDeps) => Html;
}): readonly Route[] => [
  {
    method: "GET",
    path: silencesPath,
    access: "status:read",
    async answer({ db, timeZone }, { visitor, actor }) {
      const silences = await listSilences(db, { all: true, limit: mostSilencesListed });
      const sight = sightOf(visitor.permissions);
      if (sight.people && silences.some(({ reason }) => reason !== null)) {
        const subject = { kind: "page", id: silencesPath };
        await inTransaction(db, (trx) => recordAct(trx, actor, { action: "notes.read", subject }));
      }
      return {
        kind: "page",
        title: "Silences",
        body: renderSilencesPage({
          silences,
          rules: ruleNames,
          mayWrite: visitor.permissions.has("alert:write"),
          sight,
          timeZone,
        }),
        command: tallyhook("alerts silences --all"),
      };
    },
  },
  actRoute({
    act: silencing,
    path: silencesPath,
    deps,
    given: { alert: null, wholeRule: false },
    back: () => silencesPath,
    done: () => ({ to: silencesPath, notice: "Silenced." }),
  }),
  actRoute({
    act: unsilencing,
    path: "/alerts/silences/:silence/end",
    deps,
    back: () => silencesPath,
    now: silenceNow,
    done: ({ outcome }, _, { form }) => ({
      to: backTo(form.get("alert")),
      notice:
        outcome === "over" ? "The silence was over already." : "The silence has ended: what it held back is sent now.",
    }),
  }),
  actRoute({
    act: silencing,
    path: "/alerts/:alert/silence",
    deps,
    given: { rule: null },
    back: ({ alert }) => `/alerts/${alert}`,
    now,
    done: (_, { alert }) => ({ to: `/alerts/${alert}`, notice: "Silenced." }),
  }),
];

const backTo = (alert: string | null): string => (/^\d{1,15}$/.test(alert ?? "") ? `/alerts/${alert}` : silencesPath);

const silenceNow = (now: unknown, { timeZone }: Pick<PageDeps, "timeZone">): Html => {
  const silence = now as SilenceRow;
  return html`<p>
    ${silence.is_in_force ? "It is in force until " : "It ended: "}${time(silence.ended_at ?? silence.ends_at, timeZone)}${silence.ended_by !== null && html` by ${silence.ended_by}`}
  </p>`;
};
