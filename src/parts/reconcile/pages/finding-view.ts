import { type Html, html } from "../../../platform/html.ts";
import { withoutControls } from "../../../platform/readable-text.ts";
import { paragraph } from "../../../platform/free-text.ts";
import { isResource } from "../../../core/mirror/resources.ts";
import { hidden } from "../compare/differences.ts";
import type { Difference, FindingClass, FindingRow } from "../findings/findings.ts";
import { holdsMoney } from "../findings/search-findings.ts";
import { decidedOn } from "../../../app/dashboard/elements/decided-on.ts";
import { copyableId, money, objectPath, state, time, wholeObjectLink } from "../../../app/dashboard/elements/values.ts";
import { table } from "../../../app/dashboard/elements/table.ts";
import { runLink } from "./frame.ts";
import { ageOf, atRiskOf, severityOf } from "./findings-view.ts";
import { causeMeanings, classMeanings, findingTitle, stateTones } from "./words.ts";

export interface FindingPage {
  /** Without personal data where the visitor may not see it. */
  finding: FindingRow;
  /** The version of the whole finding, which a decision on it names. */
  version: string;
  /** Assignee and notes. */
  caseForm: Html;
  mayWrite: boolean;
  mayHeal: boolean;
  seesPersons: boolean;
  timeZone: string;
  /** Service time. */
  now: Date;
}

export function renderFinding(page: FindingPage): Html {
  const { finding, seesPersons, timeZone, now } = page;
  const { resource, object_id: id } = finding;
  return html`<section class="card">
      <div class="row">
        <h2>${findingTitle(finding)}</h2>
        ${severityOf(finding)} ${state(finding.state, stateTones[finding.state])}
      </div>
      <p class="lead">
        ${classMeanings[finding.class as FindingClass] ?? ""}
        ${typeof finding.evidence["holds"] === "string" && withoutControls(finding.evidence["holds"])}
      </p>
      <dl class="facts">
        ${
          resource !== null &&
          id !== null &&
          html`<dt>Object</dt>
            <dd>${resource} <bdi>${objectId(resource, id)}</bdi></dd>`
        }
        <dt>At risk</dt>
        <dd>${atRiskOf(finding)}</dd>
        <dt>First seen</dt>
        <dd>
          ${time(finding.first_seen, timeZone)}, ${ageOf(finding, now)}
          ${finding.healed_at === null ? "ago" : "until it was healed"}
        </dd>
        <dt>Last seen</dt>
        <dd>${time(finding.last_seen, timeZone)}${finding.run !== null && html`, ${runLink(Number(finding.run))}`}</dd>
        ${
          finding.healed_at !== null &&
          html`<dt>Healed</dt>
            <dd>${time(finding.healed_at, timeZone)}</dd>`
        }
        <dt>Cause</dt>
        <dd>${finding.cause === null ? "not known" : (causeMeanings[finding.cause] ?? finding.cause)}</dd>
        ${
          finding.ack_by !== null &&
          html`<dt>Acknowledged</dt>
            <dd>
              by
              ${withoutControls(finding.ack_by)}${finding.ack_at !== null && html`, ${time(finding.ack_at, timeZone)}`}${finding.ack_note !== null && html`: <bdi>${withoutControls(finding.ack_note)}</bdi>`}
            </dd>`
        }
      </dl>
      ${
        resource !== null &&
        id !== null &&
        html`<div class="row">
          <a class="button" href="${comparePath(resource, id)}"
            >${page.mayHeal ? "Compare with the service now, and heal" : "Compare with the service now"}</a
          >
          ${isResource(resource) && html`<a href="${objectPath(resource, id)}#blame">Why its fields have their values</a>`}
          <a href="/events?object=${encodeURIComponent(id)}">Its events</a>
          <a href="/reconciliation/findings?object=${encodeURIComponent(id)}&amp;state=any">All its findings</a>
        </div>`
      }
    </section>
    ${renderDifferences(finding, seesPersons)} ${renderEvidence(finding)}${renderDecision(page)}${page.caseForm}`;
}

export const objectId = (resource: string, id: string): Html =>
  isResource(resource) ? wholeObjectLink(resource, id) : copyableId(withoutControls(id));

export const comparePath = (resource: string, id: string): string =>
  `/reconciliation/heal/${encodeURIComponent(resource)}/${encodeURIComponent(id)}`;

const longestValue = 2_000;

/** The kind of a value: amounts are shown with their currency. */
export interface ValueOf {
  resource: string | null;
  field: string;
  currency: string | null;
}

/** A JSON value as people read it, marked where it is hidden. */
export function valueCell(value: unknown, of?: ValueOf): Html {
  if (value === null || value === undefined) return html`<span class="hint">nothing</span>`;
  if (value === hidden) return html`<span class="hint">differs; personal, not shown</span>`;
  if (of !== undefined && Number.isSafeInteger(value) && holdsMoney(of.resource, of.field)) {
    return money(value as number, of.currency);
  }
  const text = typeof value === "string" ? value : JSON.stringify(value);
  const cut = text.length > longestValue ? `${text.slice(0, longestValue).toWellFormed()}…` : text;
  return html`<bdi class="value">${withoutControls(cut)}</bdi>`;
}

function renderDifferences(finding: FindingRow, seesPersons: boolean): Html {
  const { class: kind, differences, resource, currency } = finding;
  const isHidden = differences.some((one) => one.service === hidden || one.mirror === hidden);
  return html`${table<Difference>(
    [
      { name: "Field", cell: ({ field }) => fieldCell(field) },
      {
        name: "Mirror",
        cell: ({ field, mirror }) => valueCell(mirror, { resource, field, currency }),
      },
      {
        name: "Service",
        cell: ({ field, service }) => valueCell(service, { resource, field, currency }),
      },
    ],
    differences,
    {
      caption: kind === "identity" ? "The rule's two sides" : "Differences when it was last seen",
      empty: html`The finding names no field.`,
      staysTable: true,
    },
  )}
  ${
    isHidden &&
    html`<p class="hint">
      ${seesPersons ? "Values of persons are never copied into findings. Compare with the service now to see them." : "Values of persons require the permission person:read."}
    </p>`
  }`;
}

const longestField = 80;

/** The name of a field, which may come from the service. */
export const fieldCell = (field: string): Html =>
  html`<bdi>${withoutControls(field).slice(0, longestField).toWellFormed()}</bdi>`;

function renderEvidence({ evidence }: FindingRow): Html {
  const rows = Object.entries(evidence).filter(([name]) => name !== "holds" && name !== "mode");
  if (rows.length === 0) return html``;
  return html`<section class="card">
    <h2>Evidence</h2>
    <dl class="facts">
      ${rows.map(
        ([name, value]) =>
          html`<dt>${withoutControls(name).replaceAll("_", " ")}</dt>
            <dd>${name === "events" ? renderEvents(value) : valueCell(value)}</dd>`,
      )}
    </dl>
  </section>`;
}

interface EventTrace {
  seq?: unknown;
  type?: unknown;
  state?: unknown;
}

function renderEvents(value: unknown): Html {
  const events = Array.isArray(value) ? (value as EventTrace[]) : [];
  if (events.length === 0) return html`none was received`;
  return html`<ul class="plain-list">
    ${events.slice(0, 20).map(
      ({ seq, type, state: name }) =>
        html`<li>
          <a href="/events/${Number(seq)}">event ${Number(seq)}</a>
          ${withoutControls(String(type))}, ${withoutControls(String(name))}
        </li>`,
    )}
  </ul>`;
}

function renderDecision({ finding, version, mayWrite }: FindingPage): Html {
  if (!mayWrite || finding.state === "healed") return html``;
  return html`<section class="card">
    <h2>Acknowledge</h2>
    <p class="lead">
      No report fails because of it, until it changes, or heals and comes back. The exceptions report prints the note.
    </p>
    <form method="post" action="/reconciliation/findings/${finding.id}/acknowledge" class="form-parts">
      ${decidedOn(version)}
      <div>
        <label for="ack-note">Why it may stay; name no customer</label>
        <textarea id="ack-note" name="note" rows="2" maxlength="${paragraph.longest}" required></textarea>
      </div>
      <button class="second">
        ${finding.state === "acknowledged" ? "Acknowledge with another note" : "Acknowledge"}
      </button>
    </form>
  </section>`;
}
