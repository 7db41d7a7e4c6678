import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { signatureScheme } from "../../../src/core/contract/signature/signature-scheme.ts";
import { registerSecrets } from "../../../src/main/cli/secrets.ts";
import { parseCapturedHeaders, registerSignatureExplain } from "../../../src/main/cli/signature.ts";
import { UsageError } from "../../../src/platform/errors.ts";
import { type TestDatabase, createTestDatabase } from "../../support/database.ts";
import { type CommandRun, runCommand } from "./command-line.ts";

const value = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const body = '{"id":"evt_1"}';
const signedAt = "2026-03-01T12:00:00Z";
const headers = signatureScheme("svc").sign({
  body: Buffer.from(body),
  secrets: [value],
  at: new Date(signedAt),
  messageId: "",
});
const headerLines = `POST /webhooks HTTP/1.1\r\nHost: localhost\r\nSVC-Signature: ${headers["SVC-Signature"]}\r\n`;

let folder: string;
let database: TestDatabase;

async function file(name: string, content: string): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, content);
  return path;
}

async function explain(
  args: string[],
  parts: { body?: string; headers?: string; env?: Record<string, string | undefined> } = {},
): Promise<CommandRun> {
  const captured = [
    "--headers",
    await file("headers", parts.headers ?? headerLines),
    "--body",
    await file("body", parts.body ?? body),
  ];
  const env = {
    DATABASE_URL: database.url,
    TALLYHOOK_ENCRYPTION_KEY: "ab".repeat(32),
    ...parts.env,
  };
  return runCommand(registerSignatureExplain, ["signature", "explain", ...captured, ...args], {
    env,
  });
}

beforeAll(async () => {
  database = await createTestDatabase();
  folder = await mkdtemp(join(tmpdir(), "tallyhook-signature-"));
});
afterAll(async () => {
  await database.destroy();
  await rm(folder, { recursive: true });
});

describe("tallyhook signature explain", () => {
  it("says that a request verifies, by a secret of the environment", async () => {
    const { out, error } = await explain(["--at", signedAt], {
      env: { SVC_WEBHOOK_SECRETS: value },
    });
    expect(error).toBeNull();
    expect(out).toContain("verdict: accepted");
    expect(out).toContain("scheme svc, secret env:");
    expect(out).not.toContain(value);
  });

  it("tries the secrets of the database", async () => {
    const env = { DATABASE_URL: database.url, TALLYHOOK_ENCRYPTION_KEY: "ab".repeat(32) };
    await runCommand(registerSecrets, ["secrets", "add"], { env, stdin: value });
    const { out } = await explain(["--at", signedAt]);
    expect(out).toContain("secret db:");
    const { err } = await explain([], { env: { TALLYHOOK_ENCRYPTION_KEY: "cd".repeat(32) } });
    expect(err).toContain("is left out");
    const without = await explain([], {
      env: { TALLYHOOK_ENCRYPTION_KEY: undefined, SVC_WEBHOOK_SECRETS: value },
    });
    expect(without.err).toContain("1 stored secret is left out, because TALLYHOOK_ENCRYPTION_KEY is not set");
    expect(without.out).toContain("env:");
    await database.db("receiver.secrets").delete();
  });

  it("tries the secrets of a file instead", async () => {
    const secretFile = await file("secrets", `not-this-one-but-long-enough\n${value}\n`);
    const { out } = await explain(["--secret-file", secretFile, "--at", signedAt]);
    expect(out).toContain("secret file:");
  });

  it("says how far the time is off and what became of the body", async () => {
    const { out } = await explain(["--at", "2026-03-01T13:00:00Z"], {
      body: `${body}\n`,
      env: { SVC_WEBHOOK_SECRETS: value },
    });
    expect(out).toContain("verdict: refused (no_match)");
    expect(out).toContain("3600 s before");
    expect(out).toContain("line break or space that was not signed");
  });

  it("prints JSON", async () => {
    const { out } = await explain(["--json", "--at", signedAt], {
      env: { SVC_WEBHOOK_SECRETS: value },
    });
    expect(JSON.parse(out)).toMatchObject({
      scheme: "svc",
      verification: { ok: true },
      ageSeconds: 0,
      matches: [{ scheme: "svc", body: "none", key: "whole", notation: "hex" }],
    });
  });

  it("names a file that cannot be read", async () => {
    const { error } = await explain(["--secret-file", "/nowhere/secrets"]);
    expect(error).toBeInstanceOf(UsageError);
    expect(String(error)).toContain("/nowhere/secrets cannot be read (ENOENT)");
  });
});

describe("captured headers", () => {
  it.each([
    ["lines", "A: 1\nB:2\n"],
    ["lines with CRLF and a request line", "POST /webhooks?x=1:2 HTTP/1.1\r\nA: 1\r\nB: 2\r\n\r\n"],
    ["curl -v", "* Connected to localhost\n> POST /webhooks HTTP/1.1\n> A: 1\n> B: 2\n>\n"],
    ["a JSON object", '{"A": "1", "B": "2"}'],
    ["a JSON object of lists", '{"A": ["1"], "B": ["2"]}'],
    ["rawHeaders", '["A", "1", "B", "2"]'],
    ["a JSON list of pairs", '[["A", "1"], ["B", "2"]]'],
  ])("are read from %s", (_case, text) => {
    expect(parseCapturedHeaders(text)).toEqual(["A", "1", "B", "2"]);
  });

  it("keep every copy of a header", () => {
    expect(parseCapturedHeaders("A: 1\nA: 2")).toEqual(["A", "1", "A", "2"]);
    expect(parseCapturedHeaders('{"A": ["1", "2"]}')).toEqual(["A", "1", "A", "2"]);
  });

  it.each(["{", "[1, 2]", '["A"]'])("that are broken JSON are refused: %s", (text) => {
    expect(() => parseCapturedHeaders(text)).toThrow(UsageError);
  });
});
