import type { Log } from "../../../platform/log.ts";
import { MailNotSent, type Mailer } from "../../../platform/mail.ts";
import type { ReportDeps } from "../write-report.ts";
import { type AttachedReport, type MailFormat, renderAttachments, composeMail } from "./compose-mail.ts";
import { type MailPlan, type Mailing, reportsOf, recordFailedAttempt, recordSent, takeDueMailing } from "./mailings.ts";

export interface MailingDeps extends Omit<ReportDeps, "write"> {
  log: Log;
  mailer: Mailer;
}

export interface MailingSettings {
  plan: MailPlan;
  to: readonly string[];
  formats: readonly MailFormat[];
}

/**
 * Sends the due mailings, each by one worker. A mail that the server does not accept is retried with backoff for two
 * days. A failed mail never throws. If a worker dies after sending and before recording it, the same mail is sent
 * again.
 */
export async function sendDueMailings(deps: MailingDeps, settings: MailingSettings): Promise<void> {
  for (;;) {
    const mailing = await takeDueMailing(deps.db);
    if (mailing === null) return;
    await sendOne(deps, settings, mailing);
  }
}

async function sendOne(deps: MailingDeps, settings: MailingSettings, mailing: Mailing): Promise<void> {
  const log = deps.log.child({ mailing: mailing.key, attempt: mailing.attempts });
  try {
    const [first, ...rest] = await attachAll(deps, settings, mailing);
    // A mail ordered under earlier settings may have no reports left.
    if (first !== undefined) {
      const { messageId } = mailing;
      await deps.mailer.send(composeMail([first, ...rest], { to: settings.to, messageId }));
    }
    await recordSent(deps.db, mailing.key);
    log.info({ recipients: settings.to.length }, "reports were mailed");
  } catch (err) {
    const { code, isRetryable } = err instanceof MailNotSent ? err : { code: "REPORT", isRetryable: true };
    const again = await recordFailedAttempt(deps.db, mailing, { code, isRetryable });
    if (again === null) {
      log.error(
        { err },
        "reports were not mailed and are given up: check SMTP_URL and REPORTS_MAIL_TO, then mail them by report --mail-to",
      );
    } else {
      log.warn({ err, again }, "reports could not be mailed: the next attempt is at the time in again");
    }
  }
}

async function attachAll(
  deps: MailingDeps,
  { plan, formats }: MailingSettings,
  { key, from, to, asOf }: Mailing,
): Promise<AttachedReport[]> {
  const [first, ...others] = formats;
  if (first === undefined) return [];
  const attached: AttachedReport[] = [];
  for (const report of reportsOf(plan, key)) {
    const request = {
      report,
      from,
      to,
      asOf,
      prefersFrozen: true,
      currency: undefined,
      accounts: undefined,
    };
    attached.push(await renderAttachments(deps, request, [first, ...others]));
  }
  return attached;
}
