import { randomUUID } from "node:crypto";
import type { Knex } from "knex";
import { lastDue } from "../../platform/cron.ts";
import { type Mailer, openMailer } from "../../platform/mail.ts";
import { latestAsOf } from "./base/period.ts";
import { hasEverMailed, mailPlanOf, orderMailing, periodsBefore, presumeMailed } from "./mail/mailings.ts";
import { sendDueMailings } from "./mail/send-due.ts";
import type { ScheduledTask } from "../../core/worker/scheduled-tasks.ts";
import type { Runtime } from "../../app/runtime.ts";
import { reportsStandbyOf } from "./standby.ts";

const checkEveryMs = 60_000;
const catchUpWithinMs = 25 * 3_600_000;

/**
 * The report mails, and the check for those that were missed while no worker ran or the mail server was unreachable. A
 * mail's key is its period, so each period is mailed once, however many workers run the task. Empty if no mails are
 * configured.
 */
export async function reportMailTasks(runtime: Runtime): Promise<Record<string, ScheduledTask>> {
  const { config, log, serviceClock } = runtime;
  const mail = config.reportMail;
  if (mail === null) return {};
  const { timeZone, networkRegion: region } = config;
  const settings = { plan: mailPlanOf(mail.reports), to: mail.to, formats: mail.formats };
  const mailer = mailerOf(runtime);
  const db = await runtime.db();
  const standby = reportsStandbyOf(runtime);

  async function order(moment: Date): Promise<void> {
    for (const period of periodsBefore(moment, timeZone, settings.plan)) {
      const messageId = `${period.key.replace(":", "-")}.${messageIdSuffix(runtime)}`;
      await orderMailing(db, period, { asOf: await latestAsOf(db), messageId });
    }
  }
  const send = () => sendDueMailings({ db, standby, log, mailer, clock: serviceClock, timeZone, region }, settings);

  return {
    "report-mail": {
      schedule: { cron: mail.cron, timeZone },
      async run() {
        await order(serviceClock.now());
        await send();
      },
    },
    "report-mail-catch-up": {
      schedule: { everyMs: checkEveryMs },
      async run() {
        const now = serviceClock.now();
        const due = lastDue(mail.cron, { timeZone, now, withinMs: catchUpWithinMs });
        // A deployment that never mailed starts with its first scheduled time.
        if (due !== null && (await hasEverMailed(db))) await order(due);
        await send();
      },
    },
  };
}

/** Longer than from one mail of a month to the next. */
const longestPauseMs = 32 * 86_400_000;

/** Marks reports as mailed after a restore. Does nothing where no mails are configured. */
export async function presumeReportsMailed(
  trx: Knex.Transaction,
  { config }: Pick<Runtime, "config">,
  ranUntil: Date,
): Promise<void> {
  const { reportMail: mail, timeZone } = config;
  const due = mail === null ? null : lastDue(mail.cron, { timeZone, now: ranUntil, withinMs: longestPauseMs });
  const periods = mail === null || due === null ? [] : periodsBefore(due, timeZone, mailPlanOf(mail.reports));
  await presumeMailed(trx, periods, ranUntil);
}

/** The mailer, closed with the runtime. Throws if no mail server is configured, so a command checks that first. */
export function mailerOf({ config, secrets, onClose }: Runtime): Mailer {
  if (secrets.smtpUrl === null || config.mailFrom === null) throw new Error("no mail server is configured");
  const mailer = openMailer({ url: secrets.smtpUrl, from: config.mailFrom });
  onClose(() => Promise.resolve(mailer.close()));
  return mailer;
}

/** A unique end for a Message-ID. A mailing keeps its Message-ID, so a mail that is sent twice is recognised. */
export const messageIdSuffix = ({ config }: Pick<Runtime, "config">): string =>
  `${randomUUID()}@${config.mailFrom?.split("@")[1] ?? "localhost"}`;
