import type { Knex } from "knex";
import { type AlertSeverity, alertSeverities } from "../../../alerts/message.ts";
import {
  type SilenceRequest,
  type Silenced,
  beginSilence,
  endSilence,
  findSilence,
  listSilences,
  lockSilences,
  mostSilentHours,
} from "../../../alerts/silences.ts";
import type { AlertRow } from "../../../alerts/store.ts";
import { recordAct } from "../../../people/audit.ts";
import { shortLine } from "../../../platform/free-text.ts";
import { html } from "../../../platform/html.ts";
import { inTransaction } from "../../../platform/postgres/transactions.ts";
import { outdated, versionOf } from "../../parts/decided-on.ts";
import { optionalText } from "../../parts/form-text.ts";
import { time } from "../../parts/time.ts";
import { PageError, type PageRequest, type Route } from "../../route.ts";
import { sightOf } from "./alert-words.ts";
import { renderSilencesPage, versionOfSilences } from "./silence-view.ts";

const mostListed = 100;

interface OfAlerts {
  /** The alert, locked, where it and its silences are as the form's sender saw them. Throws `PageError`. */
  requireToSilence(
    trx: Knex.Transaction,
    id: string,
    form: URLSearchParams,
    timeZone: string,
  ): Promise<AlertRow>;
  ruleNames(): readonly string[];
}

/** Silences: which there are, of an alert, of a rule, and their early end. */
export const silenceRoutes = ({ requireToSilence, ruleNames }: OfAlerts): readonly Route[] => [
  {
    method: "GET",
    path: "/alerts/silences",
    access: "status:read",
    async answer({ db, timeZone }, { visitor, actor }) {
      const silences = await listSilences(db, { all: true, limit: mostListed });
      const sight = sightOf(visitor.permissions);
      if (sight.people && silences.some(({ reason }) => reason !== null)) {
        const subject = { kind: "page", id: "/alerts/silences" };
        await inTransaction(db, (trx) => recordAct(trx, actor, { action: "notes.read", subject }));
      }
      return {
        kind: "page",
        title: "Silences",
        body: renderSilencesPage({
          silences,
          rules: ruleNames(),
          mayWrite: visitor.permissions.has("alert:write"),
          sight,
          timeZone,
        }),
        command: "node src/bin/tallyhook.js alerts silences --all",
      };
    },
  },
  {
    method: "POST",
    path: "/alerts/silences",
    access: "alert:write",
    async answer({ db }, { form, actor }) {
      const rule = ruleNames().find((known) => known === form.get("rule"));
      if (rule === undefined) throw new PageError(400, "Choose a rule. Nothing was silenced.");
      const wanted = silenceIn(form);
      await inTransaction(db, async (trx) => {
        await lockSilences(trx);
        const version = versionOfSilences(
          await listSilences(trx, { all: true, limit: mostListed }),
        );
        if (versionOf(form) !== version) {
          throw outdated(
            "What is silenced",
            html`<p><a href="/alerts/silences">Look at the silences again</a></p>`,
          );
        }
        await begin(trx, actor, { rule }, wanted);
      });
      return { kind: "redirect", to: "/alerts/silences", notice: "Silenced." };
    },
  },
  {
    method: "POST",
    path: "/alerts/silences/:silence/end",
    access: "alert:write",
    async answer({ db, timeZone }, { params, form, actor }) {
      const id = /^\d{1,15}$/.test(params["silence"] ?? "") ? Number(params["silence"]) : 0;
      await inTransaction(db, async (trx) => {
        const silence = await findSilence(trx, id);
        if (silence === null) throw new PageError(404, "There is no such silence.");
        const isAsSeen = versionOf(form) === silence.ends_at.toISOString();
        if (!isAsSeen || (await endSilence(trx, { id, by: actor.name })) !== "ended") {
          const now = (await findSilence(trx, id)) ?? silence;
          throw outdated(
            `Silence ${id}`,
            html`<p>
                ${now.is_in_force ? "It is in force until " : "It ended: "}${time(now.ended_at ?? now.ends_at, timeZone)}${now.ended_by !== null && html` by ${now.ended_by}`}
              </p>
              <p><a href="/alerts/silences">Look at the silences again</a></p>`,
          );
        }
        const subject = { kind: "silence", id: String(id) };
        await recordAct(trx, actor, { action: "silence.ended", subject });
      });
      const alert = form.get("alert") ?? "";
      return {
        kind: "redirect",
        to: /^\d{1,15}$/.test(alert) ? `/alerts/${alert}` : "/alerts/silences",
        notice: "The silence has ended: what it held back is sent at once.",
      };
    },
  },
  {
    method: "POST",
    path: "/alerts/:id/silence",
    access: "alert:write",
    async answer({ db, timeZone }, { params, form, actor }) {
      const wanted = silenceIn(form);
      return inTransaction(db, async (trx) => {
        const alert = await requireToSilence(trx, params["id"] ?? "", form, timeZone);
        const of = form.get("of") === "rule" ? { rule: alert.rule } : { key: alert.key };
        await begin(trx, actor, of, wanted);
        return { kind: "redirect", to: `/alerts/${alert.id}`, notice: "Silenced." };
      });
    },
  },
];

/** Needs a transaction. The reason is not in the record: people write in it. */
async function begin(
  trx: Knex.Transaction,
  actor: PageRequest["actor"],
  of: Silenced,
  wanted: Omit<SilenceRequest, "of" | "by">,
): Promise<void> {
  const id = await beginSilence(trx, { of, by: actor.name, ...wanted });
  const { upTo, hours } = wanted;
  await recordAct(trx, actor, {
    action: "silence.begun",
    subject: { kind: "silence", id: String(id) },
    after: { ...of, upTo, hours },
  });
}

function silenceIn(form: URLSearchParams): {
  upTo: AlertSeverity;
  hours: number;
  reason: string | null;
} {
  const given = form.get("hours") ?? "";
  const hours = /^\d{1,4}$/.test(given) ? Number(given) : 0;
  const upTo = alertSeverities.find((known) => known === form.get("up-to"));
  if (hours < 1 || hours > mostSilentHours || upTo === undefined) {
    throw new PageError(
      400,
      `A silence lasts 1 to ${mostSilentHours} hours and names a severity. Nothing was silenced.`,
    );
  }
  return { upTo, hours, reason: optionalText(form, "reason", shortLine) };
}
