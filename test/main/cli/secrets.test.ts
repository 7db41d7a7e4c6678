import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { registerSecrets } from "../../../src/main/cli/secrets.ts";
import { readAudit } from "../../../src/app/people/audit.ts";
import { ConfigurationError, UsageError } from "../../../src/platform/errors.ts";
import { type TestDatabase, createTestDatabase } from "../../support/database.ts";
import { type CommandRun, runCommand } from "./command-line.ts";

const value = "whsec_a-secret-that-is-long-enough";
const second = "whsec_another-secret-that-is-long";

let database: TestDatabase;
let folder: string;

function secrets(
  args: string[],
  given: { stdin?: string; env?: Record<string, string | undefined>; terminal?: boolean } = {},
): Promise<CommandRun> {
  const { env = {}, ...rest } = given;
  return runCommand(registerSecrets, ["secrets", ...args], {
    env: {
      DATABASE_URL: database.url,
      TALLYHOOK_ENCRYPTION_KEY: "ab".repeat(32),
      ...env,
    },
    ...rest,
  });
}

async function listed(env: Record<string, string | undefined> = {}): Promise<Record<string, unknown>[]> {
  const { out, error } = await secrets(["list", "--json"], { env });
  expect(error).toBeNull();
  return (JSON.parse(out) as { secrets: Record<string, unknown>[] }).secrets;
}

const onlyId = async (): Promise<string> => String((await listed())[0]?.["id"]);

beforeAll(async () => {
  database = await createTestDatabase();
  folder = await mkdtemp(join(tmpdir(), "tallyhook-secrets-"));
});
afterAll(async () => {
  await database.destroy();
  await rm(folder, { recursive: true });
});
beforeEach(() => database.db("receiver.secrets").delete());

describe("tallyhook secrets add", () => {
  it.each([value, `${value}\n`, `${value}\r\n`])("takes the value from standard input", async (stdin) => {
    const { out, error } = await secrets(["add", "--note", "rotation"], { stdin });
    expect(error).toBeNull();
    expect(out).toContain("was added");
    expect(out).not.toContain(value);
    expect(await listed()).toMatchObject([{ source: "database", state: "live", note: "rotation" }]);
  });

  it("takes the value from a file", async () => {
    const file = join(folder, "secret");
    await writeFile(file, `${value}\n`);
    expect((await secrets(["add", "--file", file])).error).toBeNull();
    const again = await secrets(["add"], { stdin: value });
    expect(again.error).toBeInstanceOf(UsageError);
    expect(String(again.error)).toContain("stored already");
  });

  it("stores it again when the key that it was stored under is lost", async () => {
    await secrets(["add"], { stdin: value });
    const env = { TALLYHOOK_ENCRYPTION_KEY: "cd".repeat(32) };
    expect((await listed(env))[0]).toMatchObject({ state: "unusable" });
    const { out, error } = await secrets(["add"], { stdin: value, env });
    expect(error).toBeNull();
    expect(out).toContain("was stored already. It is now encrypted with TALLYHOOK_ENCRYPTION_KEY");
    expect(await listed(env)).toMatchObject([{ state: "live" }]);
  });

  it("refuses a ninth secret that has not ended, and takes it when one has; one that is known is no ninth", async () => {
    const add = (n: number) => secrets(["add"], { stdin: `${value}-${n}` });
    for (let n = 1; n <= 8; n++) expect((await add(n)).error).toBeNull();
    const { error } = await add(9);
    expect(error).toBeInstanceOf(UsageError);
    expect(String(error)).toContain("There are 8 signing secrets that have not ended; at most 8 are allowed");
    const env = { TALLYHOOK_ENCRYPTION_KEY: "cd".repeat(32) };
    expect((await secrets(["add"], { stdin: `${value}-3`, env })).error).toBeNull();

    const id = await onlyId();
    expect((await secrets(["retire", id])).error).toBeNull();
    expect((await add(9)).error).toBeNull();
    const later = await secrets(["retire", id, "--at", "2199-01-01T00:00:00Z"]);
    expect(String(later.error)).toContain("at most 8 are allowed");
  });

  it("takes the value from a terminal without showing it", async () => {
    const { out, err, error } = await secrets(["add"], { stdin: `${value}\n`, terminal: true });
    expect(error).toBeNull();
    expect(err).toContain("it is not shown");
    expect(`${out}${err}`).not.toContain(value);
    expect(await listed()).toHaveLength(1);
  });

  it("takes no value from the arguments", async () => {
    const { error } = await secrets(["add", value]);
    expect(error).not.toBeNull();
    expect(await listed()).toEqual([]);
  });

  it("takes a window", async () => {
    const times = ["--not-before", "2099-01-01T00:00:00Z", "--not-after", "2099-02-01T00:00:00+01:00"];
    expect((await secrets(["add", ...times], { stdin: value })).error).toBeNull();
    expect(await listed()).toMatchObject([
      {
        state: "pending",
        notBefore: "2099-01-01T00:00:00.000Z",
        notAfter: "2099-01-31T23:00:00.000Z",
      },
    ]);
  });

  it.each([
    ["an empty value", [], ""],
    ["a short value", [], "too-short"],
    ["two values", [], `${value}\n${second}\n`],
    ["a time without offset", ["--not-after", "2099-01-01T00:00:00"], value],
    ["a day", ["--not-after", "2099-01-01"], value],
    ["a file that is not there", ["--file", "/nowhere/secret"], ""],
    ["far too much", [], "x".repeat(100_000)],
    ["a window that is over", ["--not-after", "2020-01-01T00:00:00Z"], value],
  ])("refuses %s", async (_case, args, stdin) => {
    const { error } = await secrets(["add", ...args], { stdin });
    expect(error).not.toBeNull();
    expect(String(error)).not.toContain(value);
    expect(await listed()).toEqual([]);
  });

  it.each([
    ["far too much", "x".repeat(100_000), "The secret is too long"],
    ["what is no text", Buffer.from([0xff, ...Buffer.from(value)]), "binary data"],
  ])("refuses %s from a file, too", async (_case, content, message) => {
    const file = join(folder, "unfit");
    await writeFile(file, content);
    const { error } = await secrets(["add", "--file", file]);
    expect(String(error)).toContain(message);
    expect(await listed()).toEqual([]);
  });

  it("refuses a device that never ends, without reading on", async () => {
    const { error } = await secrets(["add", "--file", "/dev/zero"]);
    expect(String(error)).toContain("/dev/zero is longer than 67108864 bytes");
    expect(await listed()).toEqual([]);
  });

  it("says that it needs a key where none is configured", async () => {
    const { error } = await secrets(["add"], {
      stdin: value,
      env: { TALLYHOOK_ENCRYPTION_KEY: undefined },
    });
    expect(error).toBeInstanceOf(ConfigurationError);
    expect(String(error)).toContain("TALLYHOOK_ENCRYPTION_KEY is not set");
  });
});

describe("tallyhook secrets list", () => {
  it("says plainly when there is none", async () => {
    expect((await secrets(["list"])).out).toContain("every delivery is refused");
  });

  it("shows environment and database, never a value", async () => {
    await secrets(["add"], { stdin: value });
    const env = { SVC_WEBHOOK_SECRETS: second };
    const { out } = await secrets(["list"], { env });
    expect(out).toMatch(/db:[0-9a-f]{10}/);
    expect(out).toMatch(/env:[0-9a-f]{10}/);
    expect(out).not.toContain(value);
    expect(out).not.toContain(second);
    expect(await listed(env)).toMatchObject([{ source: "database" }, { source: "environment" }]);
  });

  it("shows a secret of another key as unusable", async () => {
    await secrets(["add"], { stdin: value });
    const env = { TALLYHOOK_ENCRYPTION_KEY: "cd".repeat(32) };
    expect(await listed(env)).toMatchObject([{ state: "unusable" }]);
    expect(await listed({ TALLYHOOK_ENCRYPTION_KEY: undefined })).toMatchObject([{ state: "unusable" }]);
  });

  it("says what is safe to retire", async () => {
    await secrets(["add"], { stdin: value });
    const old = await onlyId();
    await secrets(["add"], { stdin: second });
    const used = (at: Date, where: "whereNot" | "where") =>
      database.db("receiver.secrets")[where]({ id: old }).update({ last_used_at: at });
    await used(new Date(Date.now() - 72 * 3_600_000), "where");
    await used(new Date(), "whereNot");
    const safe = (await listed()).filter(({ safeToRetire }) => safeToRetire !== null);
    expect(safe.map(({ id }) => id)).toEqual([old]);
    expect((await secrets(["list"])).out).toContain("yes: not used for 48 hours");
    expect((await secrets(["list", "--quiet-hours", "100"])).out).not.toContain("yes:");
  });
});

describe("tallyhook secrets retire", () => {
  it("ends a secret now when another one is left", async () => {
    await secrets(["add"], { stdin: value });
    const id = await onlyId();
    await secrets(["add"], { stdin: second });
    const { out, error } = await secrets(["retire", id]);
    expect(error).toBeNull();
    expect(out).toContain(`${id} ends`);
    const states = new Map((await listed()).map((each) => [each["id"], each["state"]]));
    expect(states.get(id)).toBe("ended");
  });

  it("says when the same secret goes on verifying from the environment", async () => {
    await secrets(["add"], { stdin: value });
    const id = await onlyId();
    const retire = (environment: string) => secrets(["retire", id], { env: { SVC_WEBHOOK_SECRETS: environment } });
    expect((await retire(second)).err).not.toContain("SVC_WEBHOOK_SECRETS");
    expect((await retire(`${second},${value}`)).err).toContain(
      `the same secret is in SVC_WEBHOOK_SECRETS (${id.replace("db:", "env:")})`,
    );
  });

  it("ends a secret at a time", async () => {
    await secrets(["add"], { stdin: value });
    const id = await onlyId();
    const env = { SVC_WEBHOOK_SECRETS: second };
    const { error } = await secrets(["retire", id, "--at", "2099-01-01T00:00:00Z"], { env });
    expect(error).toBeNull();
    expect(await listed()).toMatchObject([{ state: "ending", notAfter: "2099-01-01T00:00:00.000Z" }]);
  });

  it("warns when the secret is still in use", async () => {
    await secrets(["add"], { stdin: value });
    const id = await onlyId();
    await database.db("receiver.secrets").update({ last_used_at: new Date() });
    const { err } = await secrets(["retire", id], { env: { SVC_WEBHOOK_SECRETS: second } });
    expect(err).toContain("is refused");
  });

  it("asks before it ends the last secret", async () => {
    await secrets(["add"], { stdin: value });
    const id = await onlyId();
    const refused = await secrets(["retire", id]);
    expect(refused.error).toBeInstanceOf(UsageError);
    expect(String(refused.error)).toContain("every delivery would be refused");
    expect(await listed()).toMatchObject([{ state: "live" }]);
    expect(String(refused.error)).toContain("--yes");
    const no = await secrets(["retire", id], { stdin: "n\r", terminal: true });
    expect(String(no.error)).toContain("nothing was done");
    expect(no.err).toMatch(/every delivery would be refused. End it anyway\? \[y\/N\]/);
    expect(await listed()).toMatchObject([{ state: "live" }]);
    const yes = await secrets(["retire", id], { stdin: "y\r", terminal: true });
    expect(yes.error).toBeNull();
    expect(await listed()).toMatchObject([{ state: "ended" }]);
  });

  it("ends the last secret unasked with --yes", async () => {
    await secrets(["add"], { stdin: value });
    expect((await secrets(["retire", await onlyId(), "--yes"])).error).toBeNull();
    expect(await listed()).toMatchObject([{ state: "ended" }]);
  });

  it("does not count a secret that ends before, or cannot be used, as one that is left", async () => {
    await secrets(["add"], { stdin: value });
    const id = await onlyId();
    await secrets(["add", "--not-after", "2099-01-01T00:00:00Z"], { stdin: second });
    const { error } = await secrets(["retire", id, "--at", "2099-01-02T00:00:00Z"]);
    expect(String(error)).toContain("the only secret from 2099-01-02");
  });

  it("says how a secret of the environment is retired", async () => {
    const env = { SVC_WEBHOOK_SECRETS: second };
    const [first] = await listed(env);
    const { error } = await secrets(["retire", String(first?.["id"])], { env });
    expect(String(error)).toContain("SVC_WEBHOOK_SECRETS: remove it there");
  });

  it("names the secret that is not there", async () => {
    const { error } = await secrets(["retire", "db:0000000000"]);
    expect(error).toBeInstanceOf(UsageError);
    expect(String(error)).toContain("There is no secret db:0000000000");
  });
});

describe("what is done to a secret", () => {
  const acts = () => readAudit(database.db, { subject: { kind: "secret" }, limit: 10 });

  it("is recorded with who did it, without the value and the note", async () => {
    await secrets(["add", "--by", "ada", "--note", "Jane Doe asked"], { stdin: value });
    const id = await onlyId();
    const last = { actor: "ada", via: "command line", subject: { kind: "secret", id } };
    expect((await acts())[0]).toMatchObject({ ...last, action: "secret.added" });
    await secrets(["retire", id, "--yes", "--at", "2999-01-01T00:00:00Z"]);
    expect((await acts())[0]).toMatchObject({
      actor: "tester",
      action: "secret.retired",
      before: { notAfter: null },
      after: { notAfter: "2999-01-01T00:00:00.000Z" },
    });
    expect(JSON.stringify(await acts())).not.toContain(value);
    expect(JSON.stringify(await acts())).not.toContain("Jane");
  });

  it("is recorded without an end that was typed, where a known secret is only encrypted with another key", async () => {
    await secrets(["add"], { stdin: value });
    const env = { TALLYHOOK_ENCRYPTION_KEY: "cd".repeat(32) };
    await secrets(["add", "--not-after", "2999-01-01T00:00:00Z"], { stdin: value, env });
    expect((await acts())[0]).toMatchObject({ action: "secret.encrypted_anew", after: null });
    expect(await listed(env)).toMatchObject([{ notAfter: null }]);
  });

  it("is recorded as the system's user's where that is no person", async () => {
    const run = await runCommand(registerSecrets, ["secrets", "add"], {
      env: { DATABASE_URL: database.url, TALLYHOOK_ENCRYPTION_KEY: "ab".repeat(32) },
      stdin: second,
      user: { name: "node", sudoUser: null },
    });
    expect(run.error).toBeNull();
    expect((await acts())[0]).toMatchObject({ actor: "system user node" });
  });

  it("is not recorded where nothing changes", async () => {
    await secrets(["add"], { stdin: value });
    const before = await acts();
    await secrets(["add"], { stdin: value });
    expect(await acts()).toEqual(before);
  });
});
