import { embeddedDatabase } from "./variables.ts";
import type { Values } from "./variables.ts";

/** Set together or not at all: what both mean, and what none does. */
const pairs = [
  ["SVC_BASE_URL", "SVC_API_KEY", "the service", "the sandbox"],
  ["SMTP_URL", "MAIL_FROM", "mail is sent", "it is not"],
  ["REPORTS_CRON", "REPORTS_MAIL_TO", "reports are mailed", "they are not"],
] as const;

/** What does not go together, a sentence or two each, but for variables that are `bad` by themselves. Pure. */
export function contradictions(values: Values, bad: ReadonlySet<string>): string[] {
  const texts: string[] = [];
  for (const [one, other, both, none] of pairs) {
    const isSet = [values[one] !== null, values[other] !== null];
    if (isSet[0] === isSet[1] || bad.has(one) || bad.has(other)) continue;
    const [present, absent] = isSet[0] === true ? [one, other] : [other, one];
    texts.push(`${present} is set and ${absent} is not. Set both (${both}) or none (${none}).`);
  }
  if (values.SVC_BASE_URL !== null && values.DATABASE_URL === null && !bad.has("DATABASE_URL")) {
    texts.push(
      "SVC_BASE_URL is set and DATABASE_URL is not. Set it to your PostgreSQL, or, to try Tallyhook with a " +
        `database on this machine, to the word ${embeddedDatabase}.`,
    );
  }
  if (values.PORT === values.ADMIN_PORT && values.PORT !== 0) {
    texts.push(
      `PORT and ADMIN_PORT are both ${values.PORT}. They should differ: only PORT is public.`,
    );
  }
  if (values.REPORTS_CRON !== null && values.SMTP_URL === null && !bad.has("SMTP_URL")) {
    texts.push(
      "REPORTS_CRON is set and SMTP_URL is not. Reports are mailed through SMTP_URL, from MAIL_FROM.",
    );
  }
  return texts;
}
