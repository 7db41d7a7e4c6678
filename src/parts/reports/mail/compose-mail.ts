import { html } from "../../../platform/html.ts";
import type { Attachment, Mail } from "../../../platform/mail.ts";
import { counted } from "../../../platform/readable-text.ts";
import { type ReportFacts, type Verdict, resultLine, standbyLine } from "../base/report-facts.ts";
import type { Format } from "../render/formats.ts";
import { type ReportDeps, type ReportRequest, writeReport } from "../write-report.ts";

/** The worst first: the subject of a mail names the worst verdict in it. */
const verdicts: readonly Verdict[] = ["INCOMPLETE", "FAIL", "PASS"];

/** Composes the mail with the reports of one period: their facts in the text, their rows attached. */
export function composeMail(
  reports: readonly [AttachedReport, ...AttachedReport[]],
  { to, messageId }: Pick<Mail, "to" | "messageId">,
): Mail {
  const { period } = reports[0].about;
  const days = period.from === period.to ? period.from : `${period.from} to ${period.to}`;
  const verdict = verdicts.find((each) => reports.some(({ about }) => about.proof.verdict === each));
  return {
    messageId,
    to,
    subject: `${verdict}: finance reports of ${days}`,
    text: textOf(reports, days),
    html: htmlOf(reports, days),
    attachments: reports.flatMap(({ attachments }) => attachments),
  };
}

function textOf(reports: readonly AttachedReport[], days: string): string {
  const parts = reports.map(({ about, leftOut }) =>
    [
      `${about.report}: ${resultLine(about)}`,
      `  ${counted(about.rows, "row")}, SHA-256 ${about.sha256}`,
      ...(about.standby === undefined ? [] : [`  Read from ${standbyLine(about.standby)}`]),
      `  Again: ${commandFor(about)}`,
      ...leftOut.map((format) => `  ${tooLarge(format)}`),
    ].join("\n"),
  );
  return `Finance reports of ${days} (${zoneOf(reports)})\n\n${parts.join("\n\n")}\n`;
}

function htmlOf(reports: readonly AttachedReport[], days: string): string {
  const cell = "padding:6px 14px 6px 0;border-bottom:1px solid #d6dadd;vertical-align:top";
  return html`<div style="font-family:Arial,sans-serif;font-size:14px;line-height:1.45">
    <p>Finance reports of <b>${days}</b> (${zoneOf(reports)}). The rows are attached.</p>
    <table style="border-collapse:collapse;font-size:13px">
      ${reports.map(
        ({ about, leftOut }) =>
          html`<tr>
            <td style="${cell}"><b>${about.report}</b></td>
            <td style="${cell}">
              ${resultLine(about)}${leftOut.map((format) => html`<br />${tooLarge(format)}`)}<br />
              <span style="color:#586069;font-size:11px"
                >${counted(about.rows, "row")}, SHA-256 ${about.sha256}<br />${
                  about.standby !== undefined && html`Read from ${standbyLine(about.standby)}<br />`
                }${commandFor(about)}</span
              >
            </td>
          </tr>`,
      )}
    </table>
  </div>`.markup;
}

const tooLarge = (format: MailFormat): string =>
  `Too large to be mailed as ${format}: add --format ${format} --out FILE to the command.`;

const zoneOf = ([first]: readonly AttachedReport[]): string => `days of ${first?.about.period.timeZone}`;

/** The command that gives the same rows again; for a closed month, the frozen ones. */
function commandFor({ report, period, asOf, close }: ReportFacts): string {
  const time = close === null ? ` --as-of ${asOf}` : "";
  return `tallyhook report ${report} --from ${period.from} --to ${period.to}${time}`;
}

export const mailFormats = ["html", "xlsx", "csv", "json"] as const;
export type MailFormat = (typeof mailFormats)[number] & Format;

const contentTypes: Readonly<Record<MailFormat, string>> = {
  html: "text/html",
  xlsx: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
  csv: "text/csv",
  json: "application/json",
};

/**
 * The most of one file. Mailboxes commonly take 20 to 25 MB a mail, base64 adds a third, and a mail has several files.
 */
const mostBytes = 8 * 1024 * 1024;

export interface AttachedReport {
  about: ReportFacts;
  attachments: Attachment[];
  /** Formats whose file was too large to be mailed. */
  leftOut: MailFormat[];
}

/** Renders a report once for each format. Throws `UsageError` if that is not possible. */
export async function renderAttachments(
  deps: Omit<ReportDeps, "write">,
  request: Omit<ReportRequest, "format">,
  formats: readonly [MailFormat, ...MailFormat[]],
): Promise<AttachedReport> {
  const attachments: Attachment[] = [];
  const leftOut: MailFormat[] = [];
  let about: ReportFacts | undefined;
  for (const format of formats) {
    const sink = createSink();
    about = await writeReport({ ...deps, write: sink.write }, { ...request, format });
    const content = sink.content();
    if (content === null) {
      leftOut.push(format);
      continue;
    }
    const { from, to } = about.period;
    const filename = `${about.report}_${from}_${to}.${format}`;
    attachments.push({ filename, contentType: contentTypes[format], content });
  }
  if (about === undefined) throw new Error("a report is mailed in at least one format");
  return { about, attachments, leftOut };
}

/** Collects the output, and drops all of it once it exceeds `mostBytes`. */
function createSink(): {
  write(chunk: string | Uint8Array): Promise<void>;
  content(): Buffer | null;
} {
  let chunks: Buffer[] = [];
  let bytes = 0;
  return {
    write(chunk) {
      const more = Buffer.from(chunk as Uint8Array);
      bytes += more.length;
      if (bytes > mostBytes) chunks = [];
      else chunks.push(more);
      return Promise.resolve();
    },
    content: () => (bytes > mostBytes ? null : Buffer.concat(chunks)),
  };
}
