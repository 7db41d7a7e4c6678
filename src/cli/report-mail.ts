import { ConfigurationError, UnreachableError, UsageError } from "../platform/errors.ts";
import { MailNotSent } from "../platform/mail.ts";
import { attachReport, mailFormats } from "../reports/mail/attach-report.ts";
import { composeMail } from "../reports/mail/compose-mail.ts";
import type { Format } from "../reports/render/formats.ts";
import type { ReportRequest } from "../reports/write-report.ts";
import { migratedDatabase } from "../runtime.ts";
import type { CliContext } from "./context.ts";
import { mailerOf, messageIdEnd } from "./report-mail-tasks.ts";
import { counted } from "../platform/counted.ts";

export interface MailOptions {
  to: readonly string[];
  format: Format | undefined;
  out: string | undefined;
}

/** Mails one report now, as the worker mails them by REPORTS_CRON: also the way to try the settings. */
export async function mailReport(
  context: CliContext,
  request: Omit<ReportRequest, "format">,
  { to, format = "html", out }: MailOptions,
): Promise<void> {
  const mailed = mailFormats.find((each) => each === format);
  if (mailed === undefined) throw new UsageError(`Mail takes ${mailFormats.join(", ")}.`);
  if (out !== undefined) throw new UsageError("Use --out or --mail-to, not both.");
  const { config } = context.loaded();
  if (config.mailFrom === null) {
    throw new ConfigurationError(
      "SMTP_URL and MAIL_FROM are not set: mails go through the one and come from the other.",
    );
  }
  await context.withRuntime(
    "report",
    async (runtime) => {
      const db = await migratedDatabase(runtime);
      const { timeZone, networkRegion: region } = runtime.config;
      const deps = { db, clock: runtime.serviceClock, timeZone, region };
      const attached = await attachReport(deps, request, [mailed]);
      const messageId = `${request.report.name}.${messageIdEnd(runtime)}`;
      try {
        await mailerOf(runtime).send(composeMail([attached], { to, messageId }));
      } catch (cause) {
        if (!(cause instanceof MailNotSent)) throw cause;
        throw new UnreachableError(
          `${cause.message} Check SMTP_URL, MAIL_FROM and the addresses.`,
          {
            cause,
          },
        );
      }
      const recipients = counted(to.length, "address", "addresses");
      context.stdout.write(`${request.report.name} was mailed to ${recipients}.\n`);
    },
    { logLevel: "warn" },
  );
}
