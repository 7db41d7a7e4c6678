import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { type Mail, MailNotSent, type Mailer, openMailer } from "../../src/platform/mail.ts";
import { freePort } from "../support/free-port.ts";
import { type MailServer, startMailServer } from "../support/mail-server.ts";
import { projectRoot } from "../support/project-root.ts";
import { hasOpenssl, selfSigned } from "../support/self-signed.ts";

let server: MailServer;
const opened: Mailer[] = [];

beforeAll(async () => {
  server = await startMailServer();
});
afterEach(() => {
  server.refuseWith(null);
  for (const mailer of opened.splice(0)) mailer.close();
});
afterAll(() => server.close());

const open = (url = server.url): Mailer => {
  const mailer = openMailer({ url, from: "tallyhook@example.com" });
  opened.push(mailer);
  return mailer;
};
const mail: Mail = {
  messageId: "report-1@tallyhook.example",
  to: ["one@example.com", "two@example.com"],
  subject: "Month end: 10,00 €",
  text: "Everything is equal.",
  html: "<p>Everything is equal.</p>",
  attachments: [{ filename: "month-end.csv", contentType: "text/csv", content: Buffer.from("a,b\n") }],
};

test("delivers text, HTML and attachments to every recipient, signed in as the URL says", async () => {
  await open().send(mail);
  const got = server.mails.at(-1);
  expect(got).toMatchObject({ from: "tallyhook@example.com", to: mail.to });
  expect(got?.source).toContain("Message-ID: <report-1@tallyhook.example>");
  expect(got?.source).toContain("Content-Type: text/html");
  expect(got?.source).toContain("filename=month-end.csv");
});

test("a line break in a subject cannot add a header", async () => {
  await open().send({ ...mail, subject: "all well\r\nBcc: thief@example.com" });
  expect(server.mails.at(-1)?.source).not.toMatch(/^Bcc:/m);
});

test.each([
  [451, true],
  [550, false],
])("a mail that is answered with %i may be tried again: %s", async (code, isRetryable) => {
  server.refuseWith(code);
  await expect(open().send(mail)).rejects.toMatchObject({ code: String(code), isRetryable });
});

test("a server that is away is worth another try, and its address is not told", async () => {
  const port = await freePort();
  const sent = open(`smtp://user:hunter22@127.0.0.1:${port}`).send(mail);
  await expect(sent).rejects.toMatchObject({ isRetryable: true });
  await expect(sent).rejects.not.toThrow(/hunter22|127\.0\.0\.1/);
});

test("a wrong password is refused without being told", async () => {
  const { port } = new URL(server.url);
  const sent = open(`smtp://user:hunter22@127.0.0.1:${port}`).send(mail);
  await expect(sent).rejects.toMatchObject({ isRetryable: false });
  await expect(sent).rejects.not.toThrow(/hunter22/);
});

describe("a server is tried without a mail", () => {
  test("that takes connection and sign-in", async () => {
    const before = server.mails.length;
    await expect(open().verify()).resolves.toBeUndefined();
    expect(server.mails).toHaveLength(before);
  });

  test("that is away, or refuses the password", async () => {
    await expect(open(`smtp://127.0.0.1:${await freePort()}`).verify()).rejects.toThrow(MailNotSent);
    const { port } = new URL(server.url);
    const refused = open(`smtp://user:hunter22@127.0.0.1:${port}`).verify();
    await expect(refused).rejects.toMatchObject({ code: "535", isRetryable: false });
    await expect(refused).rejects.not.toThrow(/hunter22/);
  });
});

// As Debian's Postfix is installed.
describe.skipIf(!hasOpenssl)("a server that offers STARTTLS with a certificate of its own", () => {
  async function startOwn(host: string): Promise<MailServer> {
    const own = await startMailServer({ tls: selfSigned(host) });
    onTestFinished(() => own.close());
    return own;
  }

  test.each(["127.0.0.1", "localhost"])("takes mails on this machine, by %s", async (host) => {
    const own = await startOwn("mail.example.com");
    const mailer = open(own.url.replace("127.0.0.1", host));
    await mailer.verify();
    await mailer.send(mail);
    expect(own.mails).toHaveLength(1);
  });

  test("gets none elsewhere, neither a password, and the reason names the certificate", async () => {
    const own = await startOwn("mail.example.com");
    const mailer = openMailer(elsewhere(own));
    opened.push(mailer);
    for (const tried of [mailer.send(mail), mailer.verify()]) {
      await expect(tried).rejects.toMatchObject({
        code: "DEPTH_ZERO_SELF_SIGNED_CERT",
        remedy: expect.stringContaining("NODE_EXTRA_CA_CERTS") as string,
      });
    }
    expect(own.mails).toEqual([]);
  });

  test.each([
    ["mail.example.com", "sent"],
    ["other.example.com", "ERR_TLS_CERT_ALTNAME_INVALID"],
  ])("that NODE_EXTRA_CA_CERTS names: a certificate for %s gives %s", async (host, outcome) => {
    const made = selfSigned(host);
    const own = await startMailServer({ tls: made });
    const directory = await mkdtemp(join(tmpdir(), "tallyhook-ca-"));
    onTestFinished(async () => {
      await own.close();
      await rm(directory, { recursive: true });
    });
    const file = join(directory, "mail.pem");
    await writeFile(file, made.cert);
    const program = `
      import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
      import { openMailer } from "./src/platform/mail.ts";
      const port = ${new URL(own.url).port};
      const mailer = openMailer({
        url: ${JSON.stringify(elsewhere(own).url)},
        from: "tallyhook@example.com",
        connect: async () => connect(port, "127.0.0.1"),
      });
      const mail = { messageId: "1@example.com", to: ["one@example.com"], subject: "a", text: "b" };
      mailer.send(mail).then(() => console.log("sent"), ({ code }) => console.log(code));`;
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ["--import", "tsx", "--input-type=module", "--eval", program],
      { cwd: projectRoot, env: { PATH: process.env["PATH"], NODE_EXTRA_CA_CERTS: file } },
    );
    expect(stdout.trim()).toBe(outcome);
    expect(own.mails).toHaveLength(outcome === "sent" ? 1 : 0);
  });

  /** The same server by a name that is not this machine's. */
  function elsewhere({ url }: MailServer) {
    const { port, username, password } = new URL(url);
    return {
      url: `smtp://${username}:${password}@mail.example.com:${port}`,
      from: "tallyhook@example.com",
      connect: async () => connect(Number(port), "127.0.0.1"),
    };
  }
});
