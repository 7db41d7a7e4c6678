import { once } from "node:events";
import type { AddressInfo } from "node:net";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { SMTPServer, type SMTPServerSession } from "smtp-server";

export interface ReceivedMail {
  from: string;
  to: string[];
  /** Headers and body as received. */
  source: string;
}

export interface MailServer {
  /** Includes the user and password that the server requires. */
  url: string;
  /** Grows with every mail that was taken. */
  mails: ReceivedMail[];
  /** Resolves with the next mail that is taken. */
  next(): Promise<ReceivedMail>;
  /** Refuses every mail with this code from now on; null accepts them again. */
  refuseWith(code: number | null): void;
  close(): Promise<void>;
}

/**
 * A real SMTP server on a free port of 127.0.0.1. With `tls` it offers STARTTLS, and takes no password before it where
 * it `demandsTls`.
 */
export async function startMailServer({
  tls,
  demandsTls = false,
}: { tls?: { key: Buffer; cert: Buffer }; demandsTls?: boolean } = {}): Promise<MailServer> {
  const mails: ReceivedMail[] = [];
  const waiting: ((mail: ReceivedMail) => void)[] = [];
  let refusal: number | null = null;
  async function takeMail(
    stream: Readable,
    { mailFrom, rcptTo }: SMTPServerSession["envelope"],
    done: (refused?: Error) => void,
  ): Promise<void> {
    const source = await text(stream);
    if (refusal !== null) {
      done(Object.assign(new Error("refused"), { responseCode: refusal }));
      return;
    }
    const from = mailFrom === false ? "" : mailFrom.address;
    const mail = { from, to: rcptTo.map(({ address }) => address), source };
    mails.push(mail);
    for (const resolve of waiting.splice(0)) resolve(mail);
    done();
  }
  const server = new SMTPServer({
    ...(tls ?? { disabledCommands: ["STARTTLS"] }),
    allowInsecureAuth: !demandsTls,
    onAuth({ username, password }, _session, done) {
      const isRight = username === "tally@hook" && password === "p:ss/word";
      done(isRight ? null : new Error("who?"), { user: username });
    },
    onData(stream, { envelope }, done) {
      void takeMail(stream, envelope, done);
    },
  });
  // A client that goes away in the middle is no fault of the server.
  server.on("error", () => {});
  server.listen(0, "127.0.0.1");
  await once(server.server, "listening");
  const { port } = server.server.address() as AddressInfo;
  return {
    url: `smtp://${encodeURIComponent("tally@hook")}:${encodeURIComponent("p:ss/word")}@127.0.0.1:${port}`,
    mails,
    next: () => new Promise((resolve) => waiting.push(resolve)),
    refuseWith: (code) => void (refusal = code),
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}
