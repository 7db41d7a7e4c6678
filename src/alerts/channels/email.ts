import type { Mailer } from "../../platform/mail.ts";
import { MailNotSent } from "../../platform/mail.ts";
import { DestinationRefused } from "../destinations/destination-guard.ts";
import type { AlertMessage } from "../message.ts";
import type { Channel } from "./channel.ts";
import { DeliveryFailed } from "./channel.ts";
import { alertHtml, alertText } from "./email-body.ts";
import { headlineOf } from "./headline.ts";
import { digestOf } from "./message-keys.ts";
import { oneLine } from "./plain-text.ts";

export interface EmailChannelOptions {
  mailer: Mailer;
  host: string;
  to: readonly string[];
  /** Of the ids of the mails: the sender's domain. */
  domain: string;
}

/**
 * Mails, in text and HTML. The id of a mail comes from the key of its message, so that a mailbox can know a repeat;
 * all mails of one alert name the same parent, so that they are one thread.
 */
export function createEmailChannel({ mailer, host, to, domain }: EmailChannelOptions): Channel {
  const idOf = (text: string): string => `${digestOf(text, 40)}@${domain}`;
  return {
    kind: "email",
    host,
    async send(message: AlertMessage, { signal }) {
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
      return `${host} took the mail`;
    },
    close: async () => mailer.close(),
  };
}

/** A mail that is under way cannot be called back: it may arrive, and its repeat bears the same id. */
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
    return new DeliveryFailed(`${host}: the mail could not be made`, {
      isRetryable: false,
      mayHaveArrived: false,
    });
  }
  const { code, isRetryable, cause } = error;
  if (cause instanceof DestinationRefused) {
    return new DeliveryFailed(cause.message, { isRetryable: true, mayHaveArrived: false });
  }
  // A wrong password is mended in the settings, and then this mail goes too.
  const isLoginRefused = code === "EAUTH" || /^53\d$/.test(code);
  return new DeliveryFailed(`${host} did not take the mail (${code})`, {
    isRetryable: isRetryable || isLoginRefused,
    mayHaveArrived: !/^\d+$/.test(code) && !neverSent.has(code),
  });
}

const neverSent = new Set(["ECONNECTION", "EAUTH", "EENVELOPE", "EDNS", "ETLS"]);
