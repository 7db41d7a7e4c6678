import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { type Mail, type Mailer, openMailer } from "../../src/platform/mail.ts";
import { freePort } from "../support/free-port.ts";
import { type MailServer, startMailServer } from "../support/mail-server.ts";

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
  attachments: [
    { filename: "month-end.csv", contentType: "text/csv", content: Buffer.from("a,b\n") },
  ],
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
