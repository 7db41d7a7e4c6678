import type { Attachment } from "../../platform/mail.ts";
import type { About } from "../about.ts";
import type { Format } from "../render/formats.ts";
import { writeReport } from "../write-report.ts";
import type { ReportDeps, ReportRequest } from "../write-report.ts";

export const mailFormats = ["html", "xlsx", "csv", "json"] as const;
export type MailFormat = (typeof mailFormats)[number] & Format;

const contentTypes: Readonly<Record<MailFormat, string>> = {
  html: "text/html",
  xlsx: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
  csv: "text/csv",
  json: "application/json",
};

/** Mailboxes commonly take 20 to 25 MB, and base64 adds a third. */
const mostBytes = 8 * 1024 * 1024;

export interface AttachedReport {
  about: About;
  attachments: Attachment[];
  /** Formats that came out too large to be mailed. */
  leftOut: MailFormat[];
}

/** Renders a report once for each format. Throws `UsageError` where it is not possible. */
export async function attachReport(
  deps: Omit<ReportDeps, "write">,
  request: Omit<ReportRequest, "format">,
  formats: readonly [MailFormat, ...MailFormat[]],
): Promise<AttachedReport> {
  const attachments: Attachment[] = [];
  const leftOut: MailFormat[] = [];
  let about: About | undefined;
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

/** Keeps what is written, and lets go of it once it is too much. */
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
