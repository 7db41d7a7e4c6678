import { type Html, html } from "../../../platform/html.ts";
import { durationText, linesWithoutControls, withoutControls } from "../../../platform/readable-text.ts";
import type { Verdict } from "../base/report-facts.ts";
import { closeReason, versionOfPreparation } from "../close/acts.ts";
import { membersOf } from "../close/manifest.ts";
import type { MonthCheck, MonthState } from "../close/month-state.ts";
import type { Preparation } from "../close/prepare-month.ts";
import type { StoredClose } from "../close/verify.ts";
import { titleOf } from "../render/document.ts";
import { decidedOn } from "../../../app/dashboard/elements/decided-on.ts";
import { copyableId, money, state, time } from "../../../app/dashboard/elements/values.ts";
import { table } from "../../../app/dashboard/elements/table.ts";
import { monthAddress, monthName } from "./close-view.ts";
import type { Failure, Work } from "./month-work.ts";
import { addressOf, renderAccounts, verdict } from "./report-view.ts";

export interface MonthPage {
  state: MonthState;
  work: Work | null;
  /** The failure of the last work on it. */
  failure: (Omit<Failure, "error"> & { says: Html }) | null;
  mayPrepare: boolean;
  /** Null: the visitor may close the prepared month. Else the reason. */
  whyNotClose: string | null;
  fourEyes: boolean;
  now: Date;
  timeZone: string;
}

export function renderMonth(page: MonthPage): Html {
  const { state: month, work, failure, timeZone } = page;
  if (month.close !== null) return renderClosed(month.close, page);
  return html`${work !== null && renderWork(work, page)}
  ${
    failure !== null &&
    html`<section class="problem" role="alert">
      <h2>
        ${failure.doing === "closing" ? "It was not closed" : "It was not prepared"} when ${failure.by} tried at
        ${time(failure.at, timeZone)}
      </h2>
      ${failure.says}
    </section>`
  }
  ${month.preparation !== null && renderPreparation(month.preparation, page)} ${renderChecks(month)}
  ${work === null && page.mayPrepare && renderPrepareForm(page)}`;
}

function renderWork({ doing, month, by, since, progress }: Work, page: MonthPage): Html {
  const what = doing === "closing" ? "closing" : "preparing";
  return html`<section class="card" role="status">
    <h2>${by} is ${what} ${monthName(month)}</h2>
    ${
      progress !== null &&
      html`<p>
        <label for="progress"
          >${progress.done} of ${progress.of} reports are computed; now ${titleOf(progress.report)}</label
        >
        <progress id="progress" max="${progress.of}" value="${progress.done}"></progress>
      </p>`
    }
    <p class="hint">
      For ${durationText(page.now.getTime() - since.getTime())}. It continues without this page; a month with many
      orders takes minutes.
    </p>
    <p><a class="button" href="${monthAddress(page.state.month)}">Look again</a></p>
  </section>`;
}

const labels: Readonly<Record<MonthCheck["check"], string>> = {
  over: "The month is over",
  order: "It is the next month to close",
  zone: "It uses the same time zone as the last close",
  apart: "At least a minute has passed since the last close",
  seals: "Earlier closes match their seals",
  read: "Everything created up to its end was read",
  changes: "Changes to older sales were read",
  findings: "No serious finding is open",
  minute: "Its proof was recorded at least a minute ago",
  days: "Each day's totals match the service's",
};

/** The page for each check's remedy. */
const places: Partial<Readonly<Record<MonthCheck["check"], { path: string; name: string }>>> = {
  seals: { path: "/reports/close/verify", name: "Verify every seal" },
  read: { path: "/reconciliation", name: "Reconciliation" },
  changes: { path: "/reconciliation", name: "Reconciliation" },
  findings: { path: "/reconciliation/findings", name: "Findings" },
};

function renderChecks({ month, checks }: MonthState): Html {
  return html`<section class="card">
    <h2>Before it can be closed</h2>
    <ul class="plain-list checks">
      ${checks.map(
        ({ check, isMet, says }) =>
          html`<li>
            ${isMet === null ? state("not known yet", "calm") : isMet ? state("done", "good") : state("open", "bad")}
            <div>
              <p>${labels[check]}</p>
              ${says !== null && html`<p class="hint">${linesWithoutControls(says)}</p>`}
              ${check === "days" && isMet === null && html`<p class="hint">Computed when the month is prepared. <a href="${addressOf("daily-control")}?from=${month}">Daily control</a> shows it before.</p>`}
              ${isMet === false && placeOf(check, month)}
            </div>
          </li>`,
      )}
    </ul>
  </section>`;
}

function placeOf(check: MonthCheck["check"], month: string): Html | null {
  if (check === "order") return html`<p><a href="/reports/close">Closed months</a></p>`;
  if (check === "days") {
    return html`<p><a href="${addressOf("daily-control")}?from=${month}">Daily control</a></p>`;
  }
  const place = places[check];
  return place === undefined ? null : html`<p><a href="${place.path}">${place.name}</a></p>`;
}

function renderPrepareForm({ state: month, fourEyes }: MonthPage): Html {
  const open = month.checks.filter(({ isMet }) => isMet === false);
  const never = open.some(({ check }) => ["over", "order", "zone", "apart", "seals"].includes(check));
  if (never) return html`<p class="hint">It cannot be prepared yet: see what is open above.</p>`;
  const isAgain = month.preparation !== null;
  return html`<form class="card" method="post" action="${monthAddress(month.month)}/prepare">
    <h2>${isAgain ? "Prepare it again" : "Prepare it"}</h2>
    <p class="lead">
      Computes every report as of a minute ago and keeps what it finds.
      ${fourEyes ? "Another person then closes exactly that." : "Exactly that is closed then."}
      ${isAgain && "It takes the place of the preparation above."}
    </p>
    ${decidedOn(versionOfPreparation(month.preparation))}
    ${
      open.length > 0 &&
      html`<div>
        <label for="reason">Why it is closed although it is not proved</label>
        <textarea
          id="reason"
          name="reason"
          maxlength="${closeReason.longest ?? ""}"
          rows="2"
          aria-describedby="reason-hint"
        ></textarea>
        <p class="hint" id="reason-hint">
          Without a reason this is refused. The reason is printed permanently on every report of the month. Name no
          customer.
        </p>
      </div>`
    }
    ${renderAccounts(new URLSearchParams())}
    <button class="${isAgain ? "second" : "first"}">Prepare ${monthName(month.month)}</button>
  </form>`;
}

function renderPreparation(preparation: Preparation, page: MonthPage): Html {
  const { month, preparedAt, preparedBy, asOf, reason, id } = preparation;
  const { timeZone, whyNotClose, mayPrepare, work } = page;
  return html`<section class="card">
      <div class="row">
        <h2>Prepared by ${withoutControls(preparedBy.name)}</h2>
        ${verdict(preparation.verdict)}
        <div class="row end">
          ${
            mayPrepare &&
            work === null &&
            html`<form method="post" action="${monthAddress(month)}/withdraw">
              ${decidedOn(versionOfPreparation(preparation))}<button class="second">Withdraw</button>
            </form>`
          }
          ${whyNotClose === null && work === null && html`<a class="button" href="${monthAddress(month)}/approve">Approve and close</a>`}
        </div>
      </div>
      ${whyNotClose !== null && html`<p class="hint">${whyNotClose}</p>`}
      <dl class="facts">
        <dt>Prepared</dt>
        <dd>${time(preparedAt, timeZone)}</dd>
        <dt>As of</dt>
        <dd>${time(new Date(asOf), timeZone)}</dd>
        ${
          reason !== null &&
          html`<dt>Although not proved</dt>
            <dd>${withoutControls(reason)}</dd>`
        }
        <dt>Preparation</dt>
        <dd>${id}</dd>
      </dl>
    </section>
    ${renderPrepared(preparation)}`;
}

/** The hashes that are approved, and the sums behind them. */
function renderPrepared({ month, asOf, reports, booked }: Preparation): Html {
  return html`${hashTable(
    reports.map(({ report, proof, rows, sha256 }) => ({
      report,
      verdict: proof.verdict,
      rows,
      sha256,
    })),
    (report) => `${addressOf(report)}?${new URLSearchParams({ from: month, "as-of": asOf }).toString()}`,
  )}
  ${table(
    [
      { name: "Currency", cell: ({ currency }) => currency },
      { name: "Booked", cell: ({ kind, isLate }) => (isLate ? `${kind}, of closed months` : kind) },
      { name: "Movements", kind: "number", cell: ({ movements }) => movements },
      {
        name: "Amount",
        kind: "number",
        cell: ({ amount, currency }) => money(amount, currency),
      },
    ],
    booked,
    { caption: "Movements booked in this month", empty: html`No movement is booked in this month.` },
  )}`;
}

interface Hashed {
  report: string;
  verdict: Verdict | null;
  rows: number;
  sha256: string;
}

const hashTable = (reports: readonly Hashed[], addressFor: (report: string) => string): Html =>
  table(
    [
      {
        name: "Report",
        cell: ({ report, verdict: text }) =>
          html`<a href="${addressFor(report)}">${titleOf(report)}</a> ${text !== null && verdict(text)}`,
      },
      { name: "Rows", kind: "number", cell: ({ rows }) => rows },
      {
        name: "SHA-256",
        kind: "moment",
        cell: ({ sha256 }) => html`<span class="id">${sha256}</span>`,
      },
    ],
    reports,
    { caption: "Reports", empty: html`There is no report.` },
  );

/** The page before what cannot be undone. */
export function renderApprove(preparation: Preparation): Html {
  const { month, preparedBy } = preparation;
  return html`<form class="card" method="post" action="${monthAddress(month)}/approve">
      <h2>Close ${monthName(month)} permanently?</h2>
      <p class="lead">
        ${withoutControls(preparedBy.name)} prepared it. All is computed again first: if anything that counts has
        changed since, nothing is closed, and you see what. A closed month is never opened again.
      </p>
      ${decidedOn(versionOfPreparation(preparation))}
      <p class="check">
        <input id="compared" type="checkbox" name="compared" value="yes" required />
        <label for="compared">I have compared the SHA-256 of the reports below with those that I approve</label>
      </p>
      <div class="row">
        <button>Close ${monthName(month)}</button>
        <a href="${monthAddress(month)}">Not now</a>
      </div>
    </form>
    ${renderPrepared(preparation)}`;
}

function renderClosed({ facts, sha256, manifest }: StoredClose, page: MonthPage): Html {
  const { timeZone } = page;
  const members = manifest === null ? [] : membersOf(manifest);
  const reports = members.flatMap(({ name, lines, sha256: hash }): Hashed[] => {
    const [, report] = /^reports\/(.+)\/rows$/.exec(name) ?? [];
    // The first line has the names of the columns.
    return report === undefined ? [] : [{ report, verdict: null, rows: lines - 1, sha256: hash }];
  });
  const others = members.filter(({ name }) => !name.startsWith("reports/"));
  return html`<section class="card">
      <div class="row">
        <h2>Closed ${time(new Date(facts.closed_at), timeZone)}</h2>
        ${verdict(facts.verdict as Verdict)}
      </div>
      <dl class="facts">
        <dt>Closed by</dt>
        <dd>${withoutControls(facts.closed_by ?? "not kept")}</dd>
        <dt>Prepared by</dt>
        <dd>${withoutControls(facts.prepared_by ?? "the same person, or by the command line")}</dd>
        <dt>As of</dt>
        <dd>${time(new Date(facts.as_of), timeZone)}</dd>
        <dt>Days of</dt>
        <dd>${facts.time_zone}</dd>
        ${
          facts.reason !== null &&
          html`<dt>Although not proved</dt>
            <dd>${withoutControls(facts.reason)}</dd>`
        }
        <dt>Seal (SHA-256)</dt>
        <dd>${copyableId(sha256)}</dd>
        <dt>Seal before</dt>
        <dd class="id">${facts.previous_sha256 ?? "none: it is the first close"}</dd>
      </dl>
      <p class="hint">Sign the seal: it covers all below. Your browser prints this page with lines for signatures.</p>
      <nav class="row" aria-label="This close">
        ${manifest !== null && html`<a href="${monthAddress(facts.month)}/bundle">Download the bundle for auditors</a>`}
        <a href="/reports/close/verify">Verify every seal</a>
      </nav>
    </section>
    ${
      manifest === null
        ? html`<p class="hint">An earlier version closed it, and its seal has no list of hashes.</p>`
        : hashTable(reports, (report) => `${addressOf(report)}?from=${encodeURIComponent(facts.month)}`)
    }
    ${
      others.length > 0 &&
      table(
        [
          { name: "Evidence", cell: ({ name }) => name },
          { name: "Lines", kind: "number", cell: ({ lines }) => lines },
          {
            name: "SHA-256",
            kind: "moment",
            cell: ({ sha256: hash }) => html`<span class="id">${hash}</span>`,
          },
        ],
        others,
        { caption: "Evidence behind this close", empty: html`Nothing.` },
      )
    }
    <div class="signing" aria-hidden="true">
      <p>Prepared by</p>
      <p>Closed by</p>
      <p>Date</p>
    </div>`;
}
