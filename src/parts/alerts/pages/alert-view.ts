import { runbookPath } from "../../../app/dashboard/elements/runbook.ts";
import { alertSubject, versionOfFailed, versionToSilence } from "../acts.ts";
import type { AlertEntry } from "../store.ts";
import type { SilenceRow } from "../silences.ts";
import { paragraph } from "../../../platform/free-text.ts";
import { type Html, type HtmlPart, html } from "../../../platform/html.ts";
import { type CaseView, renderCase } from "../../../app/dashboard/elements/case.ts";
import { decidedOn } from "../../../app/dashboard/elements/decided-on.ts";
import { money, outside, severityState, time } from "../../../app/dashboard/elements/values.ts";
import { table } from "../../../app/dashboard/elements/table.ts";
import { hiddenText } from "../../../app/dashboard/elements/personal.ts";
import { alertState, fact, objectLinks } from "./alert-words.ts";
import { type MessagesView, renderMessages } from "./message-view.ts";
import { renderSilences, silenceForm } from "./silence-view.ts";

export interface AlertPage extends MessagesView {
  caseView: CaseView;
  /** Silences of its key and rule, since it was raised. */
  silences: readonly SilenceRow[];
  /** The place of its rule's section: a URL, or a path in the program's folder. */
  runbook: string;
}

export function renderAlert(page: AlertPage): Html {
  const { alert, caseView, silences, mayWrite } = page;
  return html`${renderFacts(page)} ${mayWrite && renderActions(page)} ${renderLife(page)} ${renderMessages(page)}
  ${renderLists(page)} ${renderCase(caseView)}
  ${
    silences.length > 0 &&
    renderSilences({
      silences,
      caption: "Silences since it was raised",
      empty: html`None.`,
      mayEnd: mayWrite,
      sight: page.sight,
      back: alert.id,
      timeZone: page.timeZone,
    })
  }`;
}

function renderFacts({ alert, sight, timeZone, runbook }: AlertPage): Html {
  const { amount_minor: minor, currency, facts } = alert;
  const at = (moment: Date | null) => (moment === null ? null : time(moment, timeZone));
  const advice = facts["advice"];
  return html`<section class="card">
    <div class="row">${severityState(alert.severity)} ${alertState(alert, timeZone)}</div>
    ${
      sight.texts &&
      typeof advice === "string" &&
      advice !== "" &&
      html`<p class="lead">What to do: ${outside(advice, 2_000)}</p>`
    }
    <dl class="facts">
      ${fact("Number", String(alert.id))} ${fact("Rule", alert.rule)}
      ${fact("Runbook", runbookLink(alert.rule, runbook))} ${fact("About", objectLinks(alert, { whole: true }))}
      ${sight.texts && minor !== null && fact("Amount", money(minor, currency))} ${fact("Raised", at(alert.opened_at))}
      ${alert.updated_at > alert.opened_at && fact("Changed", at(alert.updated_at))}
      ${fact("Escalated", at(alert.escalated_at))}
      ${
        alert.acknowledged_at !== null &&
        fact("Acknowledged", html`${at(alert.acknowledged_at)} by ${outside(alert.acknowledged_by ?? "somebody")}`)
      }
      ${
        alert.acknowledged_note !== null &&
        fact("Note", sight.people ? outside(alert.acknowledged_note, paragraph.longest) : hiddenText)
      }
      ${fact("Resolved", at(alert.resolved_at))} ${fact("Learned by", alert.found_by)}
      ${sight.texts && fact("Key", html`<span class="id">${outside(alert.key)}</span>`)}
    </dl>
  </section>`;
}

/** The section where RUNBOOKS_URL has it, else on this dashboard. */
const runbookLink = (rule: string, runbook: string): Html =>
  URL.canParse(runbook)
    ? html`<a href="${runbook}" rel="noreferrer">${runbook}</a>`
    : html`<a href="${runbookPath(rule)}">What to do: ${rule}</a>`;

function renderActions({ alert, silences }: AlertPage): Html | null {
  const failed = alert.messages.filter((message) => message.state === "failed");
  const isOver = alert.state === "resolved";
  if (isOver && failed.length === 0) return null;
  return html`<div class="cards">
    ${
      alert.state === "open" &&
      html`<form class="card" method="post" action="/alerts/${alert.id}/acknowledge">
        <h2>Acknowledge</h2>
        ${decidedOn(alertSubject.version(alert))}
        <label for="said">What you are doing about it <span class="hint">if you like</span></label>
        <textarea id="said" name="note" rows="2" maxlength="${paragraph.longest}"></textarea>
        <p class="hint">It no longer escalates, and the channels that have it are notified that you work on it.</p>
        <button>Acknowledge</button>
      </form>`
    }
    ${
      !isOver &&
      html`<form class="card" method="post" action="/alerts/${alert.id}/silence">
        <h2>Silence</h2>
        ${decidedOn(versionToSilence(alert, silences))} ${silenceForm({ upTo: alert.severity })}
        <label for="whole-rule">Messages of</label>
        <select id="whole-rule" name="whole-rule">
          <option value="">this alert, also when it comes back</option>
          <option value="yes">all alerts of the rule ${alert.rule}</option>
        </select>
        <button class="second">Silence</button>
      </form>`
    }
    ${
      failed.length > 0 &&
      html`<form class="card" method="post" action="/alerts/${alert.id}/resend">
        <h2>Send again</h2>
        ${decidedOn(versionOfFailed(failed))}
        <p>
          ${failed.length === 1 ? "A message was" : `${failed.length} messages were`} given up. Workers send again, with
          the keys they had: what did arrive is known as a repeat. What is over by now is left out.
        </p>
        <button class="second">Send again</button>
      </form>`
    }
  </div>`;
}

const changeWords: Readonly<Record<string, string>> = {
  opened: "raised",
  updated: "raised again",
  escalated: "escalated",
  acknowledged: "acknowledged",
  resolved: "resolved",
};

function renderLife({ alert: { history }, sight, timeZone }: AlertPage): Html {
  return table<AlertEntry>(
    [
      { name: "When", cell: ({ at }) => time(at, timeZone) },
      { name: "What", cell: ({ change }) => changeWords[change] ?? change },
      { name: "Stage", cell: ({ stage }) => outside(stage, 80) },
      { name: "Learned by", cell: ({ found_by: by }) => by },
      {
        name: "Who",
        cell: ({ detail: { by, note } }) =>
          html`${typeof by === "string" && outside(by)}${
            sight.people && typeof note === "string" && html`: ${outside(note, paragraph.longest)}`
          }`,
      },
    ],
    history,
    { caption: "History", empty: html`No history is recorded.` },
  );
}

const toldHow: Readonly<Record<string, string>> = {
  alone: "by a message of its own in a storm",
  at_once: "in a storm's list, immediately",
  at_end: "in a storm's list, at its end",
  over: "in no list: it was over before",
};

interface Listing {
  channel: string;
  stage: string;
  where: HtmlPart;
  at: Date | null;
}

function renderLists({ alert, timeZone }: AlertPage): Html | null {
  const listings: Listing[] = [
    ...alert.digests.map(({ channel, stage, told_at: at }) => ({
      channel,
      stage,
      where: "the daily list",
      at,
    })),
    ...alert.stormListings.map(({ channel, stage, told_how: how, storm_id: storm, told_at: at }) => ({
      channel,
      stage,
      where: html`${toldHow[how] ?? how} (<a href="/alerts/${storm}">alert ${storm}</a>)`,
      at,
    })),
  ];
  if (listings.length === 0) return null;
  return table<Listing>(
    [
      { name: "Channel", cell: ({ channel }) => channel },
      { name: "Stage", cell: ({ stage }) => outside(stage, 80) },
      { name: "Where", cell: ({ where }) => where },
      { name: "When", cell: ({ at }) => (at === null ? "not yet" : time(at, timeZone)) },
    ],
    listings,
    { caption: "Lists that name it", empty: html`None.` },
  );
}
