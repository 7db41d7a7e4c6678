import type { ObjectKey } from "../../../core/mirror/snapshot.ts";
import { tallyhook } from "../../../platform/command-line.ts";
import { paragraph } from "../../../platform/free-text.ts";
import { type Html, html } from "../../../platform/html.ts";
import { counted, withoutControls } from "../../../platform/readable-text.ts";
import type { Difference, FindingRow } from "../findings/findings.ts";
import { impersonalDifferences } from "../findings/redact-findings.ts";
import { isHealedByHand } from "../findings/search-findings.ts";
import type { HealProposal } from "../heal-object.ts";
import { decidedOn } from "../../../app/dashboard/elements/decided-on.ts";
import { copyableId, time } from "../../../app/dashboard/elements/values.ts";
import { table } from "../../../app/dashboard/elements/table.ts";
import { comparePath, fieldCell, objectId, valueCell } from "./finding-view.ts";
import { findingTitle } from "./words.ts";

export interface HealPage {
  proposal: HealProposal;
  /** The version in a form. */
  version: string;
  findings: readonly FindingRow[];
  mayHeal: boolean;
  seesPersons: boolean;
  /** The reason typed into a refused form. */
  reason: string;
  timeZone: string;
}

export function renderHeal(page: HealPage): Html {
  const { proposal, seesPersons, timeZone } = page;
  const { object, observedAt, seen } = proposal;
  const differences = shownDifferences(proposal, seesPersons);
  const of = (field: string) => ({
    resource: object.resource,
    field,
    currency: currencyOf(proposal),
  });
  return html`<section class="card">
      <div class="row">
        <h2>
          ${object.resource}
          <bdi
            >${seen.sha256 === null ? copyableId(withoutControls(object.id)) : objectId(object.resource, object.id)}</bdi
          >
        </h2>
      </div>
      <p class="lead">Read from the service at ${time(new Date(observedAt), timeZone)}. Nothing is written yet.</p>
      <p>${summaryOf(proposal)}</p>
      ${
        seen.futureVersions.length > 0 &&
        html`<p class="problem">
          The mirror's row is dated in the future (${seen.futureVersions.join(", ")}), which keeps newer states out. A
          heal dates it now, and empties the fields that the service does not show until it shows them.
        </p>`
      }
      ${
        proposal.isRedated &&
        html`<p class="problem">
          The service itself shows a time in the future. The time of its answer is written instead.
        </p>`
      }
    </section>
    ${
      differences.length > 0 &&
      table<Difference>(
        [
          {
            name: "Field",
            cell: ({ field }) => fieldCell(field),
          },
          { name: "Mirror now", cell: ({ field, mirror }) => valueCell(mirror, of(field)) },
          {
            name: "Service now, as after a heal",
            cell: ({ field, service }) => valueCell(service, of(field)),
          },
        ],
        differences,
        { caption: "Changes that a heal would make, money first", empty: html``, staysTable: true },
      )
    }
    ${
      !seesPersons &&
      html`<p class="hint">
        For names, addresses and texts it lists only that they differ. Seeing them requires the permission person:read.
      </p>`
    }
    ${renderFindings(page)} ${renderForm(page)}`;
}

/** Leaves out the version, which is no field of the object: a heal gives the row a new date. */
function shownDifferences(proposal: HealProposal, seesPersons: boolean): Difference[] {
  const differences = seesPersons ? proposal.wholeDifferences : impersonalDifferences(proposal.differences);
  return differences.filter(({ field }) => field !== "version");
}

function currencyOf({ states }: HealProposal): string | null {
  const codes = states.map(({ columns }) => columns["currency"]);
  return codes.find((code) => typeof code === "string") ?? null;
}

function summaryOf(proposal: HealProposal): string {
  const { seen } = proposal;
  const differences = shownDifferences(proposal, false);
  if (seen.sha256 === null) return "The mirror does not have it yet: a heal would add it.";
  return differences.length === 0
    ? "Every field is as the service shows it. A heal would only date the row by this answer."
    : `${counted(differences.length, "field differs", "fields differ")}.`;
}

function renderFindings({ findings }: HealPage): Html {
  if (findings.length === 0) return html`<p class="hint">It has no open finding.</p>`;
  return html`<section class="card">
    <h2>Its findings</h2>
    <ul>
      ${findings.map(
        (finding) =>
          html`<li>
            <a href="/reconciliation/findings/${finding.id}">Finding ${finding.id}</a>, ${findingTitle(finding)}:
            ${isHealedByHand(finding) ? "closes with a heal" : "stays open until the next run has checked the rule"}
          </li>`,
      )}
    </ul>
  </section>`;
}

function renderForm({ proposal, version, mayHeal, reason }: HealPage): Html {
  const { resource, id } = proposal.object;
  if (!mayHeal) {
    return html`<p class="hint">Healing it requires the permission object:heal.</p>`;
  }
  return html`<section class="card">
    <h2>Heal</h2>
    <p class="lead">
      Writes what the service shows over the mirror's row, whatever versions it has. Later states that the service does
      not show leave the history. The person and the reason are kept permanently. A heal cannot be undone.
    </p>
    <form method="post" action="${comparePath(resource, id)}" class="form-parts">
      ${decidedOn(version)}
      <div>
        <label for="reason">Why; name no customer</label>
        <textarea id="reason" name="reason" rows="2" maxlength="${paragraph.longest}" required>${reason}</textarea>
      </div>
      <button>Heal it from the service</button>
    </form>
  </section>`;
}

/** The changes after the form was made, above the present proposal. */
export function renderOutdated({ mirror, service }: { mirror: boolean; service: boolean }): Html {
  const what = [...(mirror ? ["the mirror's row"] : []), ...(service ? ["what the service shows"] : [])];
  return html`<p>
    Changed since: ${what.length === 0 ? "the data behind the form" : what.join(", and ")}. This is the current state.
  </p>`;
}

/** The command that does the same. */
export const healCommand = ({ resource, id }: ObjectKey, quote: (text: string) => string): string =>
  tallyhook(`heal ${resource} ${quote(id)} --from-service --reason '…'`);
