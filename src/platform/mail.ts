import type { Socket } from "node:net";
import { once } from "./once.ts";

export interface Attachment {
  filename: string;
  contentType: string;
  content: Buffer;
}

export interface Mail {
  /** Without angle brackets. The same when a mail is sent again, so that a mailbox recognises the repeat. */
  messageId: string;
  to: readonly string[];
  subject: string;
  text: string;
  html?: string;
  /** The id of the mail that this one answers. That mail need not exist: mails that name the same id form a thread. */
  inReplyTo?: string;
  attachments?: readonly Attachment[];
}

export interface Mailer {
  /** Resolves once the server has accepted the mail for every recipient. Throws `MailNotSent`. */
  send(mail: Mail): Promise<void>;
  /** Connects, encrypts and signs in as for a mail, and sends none. Throws `MailNotSent`. */
  verify(): Promise<void>;
  close(): void;
}

export interface MailServer {
  /**
   * `smtp://` (with STARTTLS, except on a loopback host, to which the way is the machine's own) or `smtps://`, with user
   * and password where the server needs them.
   */
  url: string;
  from: string;
  /** Opens the connection, for callers who must choose the address themselves. */
  connect?: (host: string, port: number) => Promise<Socket>;
}

/** The mail server did not accept a mail. Its message may hold addresses, so only its code is kept. */
export class MailNotSent extends Error {
  override readonly name = "MailNotSent";
  /** The server's reply code or the error of connection or certificate: `550`, `ECONNECTION`, `CERT_HAS_EXPIRED`. */
  readonly code: string;
  /** A sentence about the remedy, where the code implies one. */
  readonly remedy: string | null;
  /** False where the same mail would be refused again. */
  readonly isRetryable: boolean;

  /** `cause`: the error of `connect`, where that opened no connection. */
  constructor(code: string, isRetryable: boolean, options?: { cause: unknown }) {
    const remedy = remedyOf(code);
    super(`The mail server did not accept the mail (${code}).${remedy === null ? "" : ` ${remedy}`}`, options);
    this.code = code;
    this.remedy = remedy;
    this.isRetryable = isRetryable;
  }
}

/** Node's codes for faults of a certificate. */
const isOfCertificate = (code: string): boolean =>
  /CERT|^CRL_|^INVALID_(CA|PURPOSE)$|^UNABLE_TO_|^PATH_LENGTH_EXCEEDED$|^HOSTNAME_MISMATCH$/.test(code);

function remedyOf(code: string): string | null {
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID" || code === "HOSTNAME_MISMATCH") {
    return "Its certificate is for another name: write the name that is in it as the host of SMTP_URL.";
  }
  if (code === "CERT_HAS_EXPIRED" || code === "CERT_NOT_YET_VALID") {
    return "Its certificate is not valid today: renew it, or set this machine's clock.";
  }
  return isOfCertificate(code)
    ? "Its certificate is not signed by an authority that this process trusts: set NODE_EXTRA_CA_CERTS to a PEM " +
        "file with it, or with its issuer's. A server on this machine needs none: write smtp://127.0.0.1."
    : null;
}

const timeoutsMs = { connectionTimeout: 10_000, greetingTimeout: 10_000, socketTimeout: 20_000 };

/** Sends mail by SMTP, one connection per mail. Connects only when a mail is sent. */
export function openMailer({ url, from, connect }: MailServer): Mailer {
  const { protocol, hostname, port, username, password } = new URL(url);
  const host = hostname.replace(/^\[|\]$/g, "");
  const secure = protocol === "smtps:";
  const portNumber = port === "" ? (secure ? 465 : 587) : Number(port);
  let close = (): void => {};
  // Loaded on demand: most processes send no mail.
  const transport = once(async () => {
    const { createTransport } = await import("nodemailer");
    const made = createTransport({
      host,
      port: portNumber,
      secure,
      requireTLS: !secure && !isLoopback(host),
      // For example Debian's Postfix, whose certificate is self-signed.
      ignoreTLS: !secure && isLoopback(host),
      ...timeoutsMs,
      // Mails consist of text: so none may open a file or a URL.
      disableFileAccess: true,
      disableUrlAccess: true,
      ...(username === "" ? {} : { auth: { user: decodeURIComponent(username), pass: decodeURIComponent(password) } }),
      ...(connect === undefined
        ? {}
        : {
            getSocket: (_options: unknown, taken: SocketTaken) =>
              void takeSocket(() => connect(host, portNumber), taken),
          }),
    });
    close = () => made.close();
    return made;
  });
  return {
    async send({ messageId, inReplyTo, to, subject, attachments = [], ...content }) {
      const sender = await transport();
      let rejected: readonly unknown[];
      try {
        ({ rejected } = await sender.sendMail({
          ...content,
          // Words that look encoded (RFC 2047) go out as they are, and the reader's program would decode them.
          subject: subject.replaceAll("=?", "= ?"),
          from,
          to: [...to],
          messageId: `<${messageId}>`,
          ...(inReplyTo === undefined ? {} : { inReplyTo: `<${inReplyTo}>`, references: `<${inReplyTo}>` }),
          // Suppresses automatic replies such as holiday notices (RFC 3834).
          headers: { "Auto-Submitted": "auto-generated" },
          attachments: [...attachments],
        }));
      } catch (error) {
        throw notSent(error);
      }
      // A retry would reach the other recipients twice.
      if (rejected.length > 0) throw new MailNotSent("RECIPIENT", false);
    },
    async verify() {
      const sender = await transport();
      try {
        await sender.verify();
      } catch (error) {
        throw notSent(error);
      }
    },
    close: () => close(),
  };
}

type SocketTaken = (error: Error | null, socket?: { connection: Socket }) => void;

async function takeSocket(connect: () => Promise<Socket>, taken: SocketTaken): Promise<void> {
  let connection: Socket;
  try {
    connection = await connect();
  } catch (cause) {
    taken(new NotConnected("no connection", { cause }));
    return;
  }
  taken(null, { connection });
}

class NotConnected extends Error {}

function notSent(error: unknown): MailNotSent {
  if (error instanceof NotConnected) {
    return new MailNotSent("ECONNECTION", true, { cause: error.cause });
  }
  const { responseCode, code, originalCode } = error as Record<string, unknown>;
  if (typeof responseCode === "number") {
    return new MailNotSent(String(responseCode), responseCode < 500);
  }
  if (typeof originalCode === "string" && isOfCertificate(originalCode)) {
    return new MailNotSent(originalCode.slice(0, 40), true);
  }
  const text = typeof code === "string" && /^[A-Z_0-9]{1,40}$/.test(code) ? code : "UNKNOWN";
  return new MailNotSent(text, text !== "EENVELOPE" && text !== "EAUTH");
}

const isLoopback = (host: string): boolean =>
  host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host);
