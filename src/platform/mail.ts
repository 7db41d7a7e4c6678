import type { Socket } from "node:net";
import { createTransport } from "nodemailer";

export interface Attachment {
  filename: string;
  contentType: string;
  content: Buffer;
}

export interface Mail {
  /** Without angle brackets. The same for a repeat of the same mail, so that a mailbox can know it. */
  messageId: string;
  to: readonly string[];
  subject: string;
  text: string;
  html?: string;
  /** The id of the mail that this one answers, which need not exist: mails that name the same are one thread. */
  inReplyTo?: string;
  attachments?: readonly Attachment[];
}

export interface Mailer {
  /** Resolves once the server has taken the mail for every recipient. Throws `MailNotSent`. */
  send(mail: Mail): Promise<void>;
  close(): void;
}

export interface MailServer {
  /** `smtp://` (STARTTLS, but for a loopback host) or `smtps://`, with user and password where it needs them. */
  url: string;
  from: string;
  /** Opens the connection in place of a plain one, for whoever has to choose the address. */
  connect?: (host: string, port: number) => Promise<Socket>;
}

/** The mail server did not take a mail. Its words may hold addresses, so only its code is told. */
export class MailNotSent extends Error {
  override readonly name = "MailNotSent";
  /** What the server answered, or what became of the connection: `550`, `ECONNECTION`. */
  readonly code: string;
  /** False where the same mail would be refused again. */
  readonly isRetryable: boolean;

  /** `cause`: why `connect` opened no connection, in its own words. */
  constructor(code: string, isRetryable: boolean, options?: { cause: unknown }) {
    super(`The mail server did not take the mail (${code}).`, options);
    this.code = code;
    this.isRetryable = isRetryable;
  }
}

const timeoutsMs = { connectionTimeout: 10_000, greetingTimeout: 10_000, socketTimeout: 20_000 };

/** Mails by SMTP, one connection a mail. Nothing is contacted before the first one is sent. */
export function openMailer({ url, from, connect }: MailServer): Mailer {
  const { protocol, hostname, port, username, password } = new URL(url);
  const host = hostname.replace(/^\[|\]$/g, "");
  const secure = protocol === "smtps:";
  const portNumber = port === "" ? (secure ? 465 : 587) : Number(port);
  const transport = createTransport({
    host,
    port: portNumber,
    secure,
    requireTLS: !secure && !isLoopback(host),
    ...timeoutsMs,
    // Mail is made of texts: nothing in it may open a file or a URL.
    disableFileAccess: true,
    disableUrlAccess: true,
    ...(username === ""
      ? {}
      : { auth: { user: decodeURIComponent(username), pass: decodeURIComponent(password) } }),
    ...(connect === undefined
      ? {}
      : {
          getSocket: (_options: unknown, taken: SocketTaken) =>
            void takeSocket(() => connect(host, portNumber), taken),
        }),
  });
  return {
    async send({ messageId, inReplyTo, to, attachments = [], ...content }) {
      let rejected: readonly unknown[];
      try {
        ({ rejected } = await transport.sendMail({
          ...content,
          from,
          to: [...to],
          messageId: `<${messageId}>`,
          ...(inReplyTo === undefined
            ? {}
            : { inReplyTo: `<${inReplyTo}>`, references: `<${inReplyTo}>` }),
          // Nobody's holiday notice should come back (RFC 3834).
          headers: { "Auto-Submitted": "auto-generated" },
          attachments: [...attachments],
        }));
      } catch (error) {
        throw notSent(error);
      }
      // A repeat would reach the others twice.
      if (rejected.length > 0) throw new MailNotSent("RECIPIENT", false);
    },
    close: () => transport.close(),
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
  const { responseCode, code } = error as { responseCode?: unknown; code?: unknown };
  if (typeof responseCode === "number") {
    return new MailNotSent(String(responseCode), responseCode < 500);
  }
  const text = typeof code === "string" && /^[A-Z_0-9]{1,40}$/.test(code) ? code : "UNKNOWN";
  return new MailNotSent(text, text !== "EENVELOPE" && text !== "EAUTH");
}

const isLoopback = (host: string): boolean =>
  host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host);
