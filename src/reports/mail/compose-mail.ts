import { html } from "../../platform/html.ts";
import type { Mail } from "../../platform/mail.ts";
import { resultLine } from "../about.ts";
import type { About } from "../about.ts";
import type { Verdict } from "../verdict.ts";
import type { AttachedReport } from "./attach-report.ts";
import { counted } from "../../platform/counted.ts";

/** The worst first: the subject says it. */
const verdicts: readonly Verdict[] = ["INCOMPLETE", "FAIL", "PASS"];

/** A mail with the reports of one period. Nothing in it but what stands above their rows; the rows are attached. Pure. */
export function composeMail(
  reports: readonly [AttachedReport, ...AttachedReport[]],
  { to, messageId }: Pick<Mail, "to" | "messageId">,
): Mail {
  const { period } = reports[0].about;
  const days = period.from === period.to ? period.from : `${period.from} to ${period.to}`;
  const verdict = verdicts.find((each) =>
    reports.some(({ about }) => about.proof.verdict === each),
  );
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
      `  again: ${commandFor(about)}`,
      ...leftOut.map(
        (format) => `  Too large to be mailed as ${format}: run the command with --out.`,
      ),
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
              ${resultLine(about)}${leftOut.map((format) => html`<br />Too large to be mailed as ${format}: run the command with --out.`)}<br />
              <span style="color:#586069;font-size:11px"
                >${counted(about.rows, "row")}, SHA-256 ${about.sha256}<br />${commandFor(about)}</span
              >
            </td>
          </tr>`,
      )}
    </table>
  </div>`.markup;
}

const zoneOf = ([first]: readonly AttachedReport[]): string =>
  `days of ${first?.about.period.timeZone}`;

/** Gives the same rows, as long as the mirror lives; of a closed month the frozen ones. */
function commandFor({ report, period, asOf, close }: About): string {
  const time = close === null ? ` --as-of ${asOf}` : "";
  return `tallyhook report ${report} --from ${period.from} --to ${period.to}${time}`;
}
