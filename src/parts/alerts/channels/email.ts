import { z } from "zod";
import { type Html, html } from "../../../platform/html.ts";
import { MailNotSent, type Mailer, openMailer } from "../../../platform/mail.ts";
import type { AlertFact, AlertItem, AlertMessage, SentMessage } from "../message.ts";
import { listOf, settingsObject, expected } from "../../../platform/setting-schemas.ts";
import { oneLine } from "../../../platform/readable-text.ts";
import {
  type Channel,
  DeliveryFailed,
  digestOf,
  headlineOf,
  maxItems,
  safeLink,
  shortMark,
  wordsOfAction,
} from "./channel.ts";
import { CannotOpen, asJson, channelKind } from "./channel-kind.ts";
import { DestinationRefused } from "../../../platform/http/destination-guard.ts";

const mailAddress = z.email(expected("an e-mail address alone, such as finance@example.com"));

/**
 * Mail through the server of SMTP_URL, from MAIL_FROM, in text and HTML. The Message-ID comes from the key of the
 * message, so that a mailbox can recognize a repeat. All mails of one alert name the same parent, which makes them one
 * thread.
 */
export const email = channelKind({
  settings: settingsObject({
    kind: z.literal("email"),
    to: listOf(mailAddress, '["finance@example.com"]').max(50, expected("a list of at most 50 addresses")),
  }),
  list: { size: 150_000, sizeOf: asJson },
  open({ to }, { smtp, guard }) {
    if (smtp === null) throw new CannotOpen("SMTP_URL and MAIL_FROM are not set; it needs both");
    const host = new URL(smtp.url).hostname.replace(/^\[|\]$/g, "").toLowerCase();
    const refused = guard.hostRefusal(host);
    if (refused !== null) throw new CannotOpen(`SMTP_URL: ${refused}`);
    const mailer = openMailer({ ...smtp, connect: guard.connect });
    const domain = smtp.from.slice(smtp.from.lastIndexOf("@") + 1);
    return createEmailChannel({ mailer, host, to, domain });
  },
});

interface EmailChannelOptions {
  mailer: Mailer;
  host: string;
  to: readonly string[];
  /** The sender's domain, for the Message-IDs. */
  domain: string;
}

function createEmailChannel({ mailer, host, to, domain }: EmailChannelOptions): Channel<SentMessage> {
  const idOf = (text: string): string => `${digestOf(text, 40)}@${domain}`;
  return {
    kind: "email",
    host,
    async send(message, { signal }) {
      const mail = {
        messageId: idOf(message.idempotencyKey),
        inReplyTo: idOf(`thread ${message.dedupKey}`),
        to,
        subject: oneLine(headlineOf(message), 150),
        text: alertText(message),
        html: alertHtml(message),
      };
      try {
        await untilAborted(mailer.send(mail), signal);
      } catch (error) {
        throw notDelivered(host, error);
      }
      return `${host} accepted the mail`;
    },
    close: async () => mailer.close(),
  };
}

/**
 * Stops waiting on abort. A mail being sent cannot be recalled: it may arrive, and its repeat has the same Message-ID.
 */
function untilAborted<T>(sent: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(new MailNotSent("ETIMEDOUT", true));
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort, { once: true });
    sent.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}

function notDelivered(host: string, error: unknown): DeliveryFailed {
  if (!(error instanceof MailNotSent)) {
    return new DeliveryFailed(`${host}: the mail could not be composed`, {
      isRetryable: false,
      mayHaveArrived: false,
    });
  }
  const { code, isRetryable, remedy, cause } = error;
  if (cause instanceof DestinationRefused) {
    return new DeliveryFailed(cause.message, { isRetryable: true, mayHaveArrived: false });
  }
  // A wrong password is corrected in the settings, and then this mail goes through.
  const isLoginRefused = code === "EAUTH" || /^53\d$/.test(code);
  const advice = remedy === null ? "" : `. ${remedy}`;
  return new DeliveryFailed(`${host} did not accept the mail (${code})${advice}`, {
    isRetryable: isRetryable || isLoginRefused,
    mayHaveArrived: !/^\d+$/.test(code) && remedy === null && !neverSent.has(code),
  });
}

const neverSent = new Set(["ECONNECTION", "EAUTH", "EENVELOPE", "EDNS", "ETLS"]);

// Keeps a mail small, however much it reports.
const maxFacts = 60;
const maxFactsOfItem = 5;
const maxValueOfItem = 200;
const maxValue = 400;
const maxRunbook = 2_000;

const factLine = ({ label, value }: AlertFact): string => `${oneLine(label, 80)}: ${oneLine(value, maxValue)}`;
/** Items show short facts, since a list has many items. */
const shortFacts = ({ facts }: AlertItem): AlertFact[] =>
  facts.slice(0, maxFactsOfItem).map(({ label, value }) => ({
    label: oneLine(label, 40),
    value: oneLine(value, maxValueOfItem),
  }));

const footerOf = (message: AlertMessage): string =>
  [wordsOfAction[message.action], message.rule, message.stage, message.at, shortMark(message)]
    .map((part) => oneLine(part, 100))
    .join(" · ");

const moreItems = (count: number): string[] => (count > maxItems ? [`… and ${count - maxItems} more.`] : []);

/** The body in plain text. */
export function alertText(message: SentMessage): string {
  const { facts, items = [], advice, links, runbook } = message;
  const paragraphs = [
    headlineOf(message),
    facts.slice(0, maxFacts).map(factLine).join("\n"),
    items
      .slice(0, maxItems)
      .map((item) =>
        [`- ${oneLine(item.title, 300)}`, ...shortFacts(item).map((fact) => `  ${factLine(fact)}`)].join("\n"),
      )
      .join("\n"),
    ...moreItems(items.length),
    advice === "" ? "" : `What to do: ${oneLine(advice, 2_000)}`,
    links.flatMap(linkLine).join("\n"),
    `Runbook: ${oneLine(runbook, maxRunbook)}`,
    footerOf(message),
  ];
  return `${paragraphs.filter((paragraph) => paragraph !== "").join("\n\n")}\n`;
}

function linkLine({ label, url }: { label: string; url: string }): string[] {
  const link = safeLink(url);
  return link === null ? [] : [`${oneLine(label, 80)}: ${link}`];
}

const colours = { critical: "#b3261e", error: "#b3261e", warning: "#8a6100", info: "#1f5fa8" };
const resolvedColour = "#1b6e3c";

/** The body in HTML, with inline styles: mail programs ignore style sheets. */
export function alertHtml(message: SentMessage): string {
  const { facts, items = [], advice, links, runbook } = message;
  const colour = message.action === "resolve" ? resolvedColour : colours[message.severity];
  const told = items.slice(0, maxItems).map(itemHtml);
  const more = moreItems(items.length).map((text) => html`<p>${text}</p>`);
  const page = html`<!doctype html>
    <html lang="en">
      <body style="font-family:sans-serif">
        <h2 style="color:${colour};font-size:18px">${headlineOf(message)}</h2>
        ${facts.length > 0 && factTable(facts.slice(0, maxFacts))}${told}${more}
        ${advice !== "" && html`<p><b>What to do:</b> ${oneLine(advice, 2_000)}</p>`} ${links.flatMap(anchor)}
        ${runbookHtml(runbook)}
        <p style="color:#666;font-size:12px">${oneLine(footerOf(message), 500)}</p>
      </body>
    </html>`;
  return page.markup;
}

const itemHtml = (item: AlertItem): Html =>
  html`<h3 style="font-size:15px">${oneLine(item.title, 300)}</h3>
    ${factTable(shortFacts(item))}`;

const factTable = (facts: readonly AlertFact[]): Html =>
  html`<table>
    ${facts.map(factRow)}
  </table>`;

const factRow = ({ label, value }: AlertFact): Html =>
  html`<tr>
    <th align="left" style="padding-right:12px">${oneLine(label, 80)}</th>
    <td>${oneLine(value, maxValue)}</td>
  </tr>`;

function runbookHtml(runbook: string): Html {
  const [link] = anchor({ label: "Runbook", url: runbook });
  return link ?? html`<p>Runbook: ${oneLine(runbook, maxRunbook)}</p>`;
}

function anchor({ label, url }: { label: string; url: string }): Html[] {
  const link = safeLink(url);
  return link === null ? [] : [html`<p><a href="${oneLine(link, 2_000)}">${oneLine(label, 80)}</a></p>`];
}
