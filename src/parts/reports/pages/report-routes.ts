import { recordAct } from "../../../app/people/audit.ts";
import { tallyhook } from "../../../platform/command-line.ts";
import { TallyhookError, UsageError } from "../../../platform/errors.ts";
import { errorCode } from "../../../platform/postgres/errors.ts";
import { inTransaction } from "../../../platform/postgres/transactions.ts";
import { html } from "../../../platform/html.ts";
import { counted, durationText, printableMessage } from "../../../platform/readable-text.ts";
import type { Report } from "../base/report.ts";
import { allReports } from "../catalogue/all.ts";
import { titleOf } from "../render/document.ts";
import { type Format, formatsOf } from "../render/formats.ts";
import { readDocument, writeReport } from "../write-report.ts";
import {
  type PageAnswer,
  type PageDeps,
  PageError,
  type PageRequest,
  type Route,
} from "../../../app/dashboard/route.ts";
import type { ReportDesk } from "./report-desk.ts";
import { writeWhole } from "./report-file.ts";
import { commandOf, isAsked, requestOf } from "./report-options.ts";
import { renderDocument, renderReportForm, renderReports } from "./report-view.ts";
import type { Turn } from "./turns.ts";

/** More than a person reads on a page; downloads have every row. */
const shownRows = 500;

const types: Readonly<Record<Format, { ending: string; type: string }>> = {
  table: { ending: "txt", type: "text/plain; charset=utf-8" },
  csv: { ending: "csv", type: "text/csv; charset=utf-8" },
  xlsx: {
    ending: "xlsx",
    type: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
  },
  json: { ending: "json", type: "application/json; charset=utf-8" },
  html: { ending: "html", type: "text/html; charset=utf-8" },
  ledger: { ending: "ledger", type: "text/plain; charset=utf-8" },
  beancount: { ending: "beancount", type: "text/plain; charset=utf-8" },
};

export const reportRoutes = (desk: ReportDesk): readonly Route[] => [
  {
    method: "GET",
    path: "/reports",
    access: "report:read",
    async answer() {
      const body = renderReports(allReports);
      return {
        kind: "page",
        title: "Reports",
        body,
        command: tallyhook("report list"),
      };
    },
  },
  {
    method: "GET",
    path: "/reports/:name",
    access: "report:read",
    async answer(deps, request) {
      const { query } = request;
      const report = requireReport(request);
      const command = commandOf(report.name, query);
      const title = titleOf(report.name);
      const form = (problem: string | null) => renderReportForm({ report, query, timeZone: deps.timeZone, problem });
      if (!isAsked(query)) return { kind: "page", title, body: form(null), command };
      try {
        const asked = requestOf(report, query);
        await recordReading(deps, request, report);
        const document = await desk.turns.take(titleOf(report.name), async () =>
          readDocument({ ...deps, ...desk, db: await desk.readingDb(), clock: deps.serviceClock }, asked, {
            shownRows,
          }),
        );
        if ("busy" in document) return busyPage(document.busy, addressAgain(request), deps);
        const body = html`${form(null)}${renderDocument(report, document.done, query)}`;
        return { kind: "page", title, body, command };
      } catch (error) {
        if (!(error instanceof UsageError)) throw reportFailure(error);
        const body = form(printableMessage(error.message));
        return { kind: "page", title, body, status: 400, command };
      }
    },
  },
  {
    method: "GET",
    path: "/reports/:name/download",
    access: "report:read",
    async answer(deps, request) {
      const { query } = request;
      const report = requireReport(request);
      const possible = formatsOf(report);
      const format = possible.find((known) => known === query.get("format"));
      if (format === undefined) throw new PageError(400, `Use one of ${possible.join(", ")}.`);
      try {
        const asked = requestOf(report, query);
        await recordReading(deps, request, report);
        const made = await desk.turns.take(titleOf(report.name), async () => {
          const db = await desk.readingDb();
          const read = { ...deps, ...desk, db, clock: deps.serviceClock };
          let period = "";
          const body = await writeWhole(async (write) => {
            const about = await writeReport({ ...read, write }, { ...asked, format });
            period = `${about.period.from}_${about.period.to}`;
          });
          return { body, period };
        });
        if ("busy" in made) return busyPage(made.busy, addressAgain(request), deps);
        const { ending, type } = types[format];
        const { body, period } = made.done;
        return { kind: "file", name: `${report.name}_${period}.${ending}`, type, body };
      } catch (error) {
        if (error instanceof UsageError) throw new PageError(400, printableMessage(error.message));
        throw reportFailure(error);
      }
    },
  },
];

/** Throws `PageError` for a report that does not exist, or that this visitor may not read. */
function requireReport({ params, visitor }: PageRequest): Report {
  const name = params["name"] ?? "";
  const report = allReports.find((known) => known.name === name);
  if (report === undefined) {
    throw new PageError(404, "There is no report of this name. /reports lists all of them.");
  }
  if (report.hasPersonalData === true && !visitor.permissions.has("month:read")) {
    throw new PageError(
      403,
      `The report ${report.name} has texts that may name people: it requires the permission month:read as well. ` +
        "Ask a person with the role admin.",
    );
  }
  return report;
}

/** Invalid months and days are not recorded: they may be any text. */
function dayIn(query: URLSearchParams, name: string): string | null {
  const given = query.get(name) ?? "";
  return /^\d{4}-\d{2}(?:-\d{2})?$/.test(given) ? given : null;
}

/** Reading personal data is on record; other reports are not. */
async function recordReading({ db }: PageDeps, { actor, query }: PageRequest, report: Report): Promise<void> {
  if (report.hasPersonalData !== true) return;
  await inTransaction(db, (trx) =>
    recordAct(trx, actor, {
      action: "report.read",
      subject: { kind: "report", id: report.name },
      after: {
        from: dayIn(query, "from"),
        to: dayIn(query, "to"),
      },
    }),
  );
}

const addressAgain = ({ params, query }: PageRequest): string =>
  `/reports/${encodeURIComponent(params["name"] ?? "")}?${query.toString()}`;

/** The page for a visitor without a free place. */
export function busyPage(turns: readonly Turn[], address: string, { clock }: Pick<PageDeps, "clock">): PageAnswer {
  const now = clock.now().getTime();
  return {
    kind: "page",
    title: "Other reports are being computed",
    status: 503,
    body: html`<p class="problem" role="alert">
        ${counted(turns.length, "report is", "reports are")} being computed, and no more at the same time, so that
        receiving is not slowed. Yours was not started.
      </p>
      <ul>
        ${turns.map(({ what, since }) => html`<li>${what}, for ${durationText(now - since.getTime())}</li>`)}
      </ul>
      <p><a class="button" href="${address}">Try again</a></p>`,
  };
}

const statementTimedOut = "57014";

/** Turns errors that people can fix into a page; returns others unchanged. */
export function reportFailure(error: unknown): unknown {
  if (errorCode(error) === statementTimedOut) {
    return new PageError(
      503,
      "The database took more than a minute for one step of this. Choose fewer days, or use the command, which " +
        "waits.",
      { cause: error },
    );
  }
  // Its message is meant for people, and names no secret.
  if (error instanceof TallyhookError) return new PageError(503, error.message, { cause: error });
  return error;
}
