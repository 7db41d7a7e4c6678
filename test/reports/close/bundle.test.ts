import { execFile } from "node:child_process";
import { mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { defaultAccounts } from "../../../src/parts/reports/base/account-map.ts";
import { writeBundle } from "../../../src/parts/reports/close/frozen.ts";
import { membersOf } from "../../../src/parts/reports/close/manifest.ts";
import { closeMonth } from "../../../src/parts/reports/close/close-month.ts";
import { type TestDatabase, createTestDatabase } from "../../support/database.ts";
import { coverAll } from "../coverage.ts";
import { letTimePass } from "../sandbox-history.ts";
import { mirrorSales } from "../shop.ts";

const script = fileURLToPath(new URL("../../../docs/verify-close.mjs", import.meta.url));

interface Verified {
  facts: Record<string, string | null>;
  sha256: string;
}
interface Verifier {
  verifyBundle(chunks: Iterable<Buffer>): Promise<Verified>;
  brokenLinks(bundles: readonly Verified[]): string[];
}

let database: TestDatabase;
let folder: string;
let verifier: Verifier;
let may: Buffer;
let june: Buffer;

const close = (month: string) =>
  closeMonth(database.db, {
    month,
    timeZone: "UTC",
    accounts: defaultAccounts,
    reason: null,
    by: "Anna Müller",
  });

async function bundle(month: string): Promise<Buffer> {
  const chunks: Buffer[] = [];
  await writeBundle(database.db, month, (chunk) => {
    chunks.push(Buffer.from(chunk as Uint8Array));
    return Promise.resolve();
  });
  return Buffer.concat(chunks);
}

const run = (...args: string[]) =>
  new Promise<{ code: number; out: string }>((resolve) => {
    execFile(process.execPath, args, (error, stdout, stderr) =>
      resolve({ code: Number(error?.code ?? 0), out: stdout + stderr }),
    );
  });

beforeAll(async () => {
  verifier = (await import(script)) as Verifier;
  folder = await mkdtemp(join(tmpdir(), "tallyhook-bundle-"));
  database = await createTestDatabase();
  await mirrorSales(database.db, [
    { nth: 1, at: "2025-05-10T10:00:00Z", amount: 1000 },
    { nth: 2, at: "2025-05-20T10:00:00Z", amount: 500, currency: "jpy", customer: 'Ünï\u2028"\\' },
    { nth: 3, at: "2025-06-02T10:00:00Z", amount: 70 },
  ]);
  await coverAll(database.db, "2025-07-01T00:00:00Z");
  await letTimePass(database.db);
  await close("2025-05");
  await letTimePass(database.db);
  await close("2025-06");
  [may, june] = [await bundle("2025-05"), await bundle("2025-06")];
});
afterAll(async () => {
  await database.destroy();
  await rm(folder, { recursive: true });
});

test("a bundle has the same bytes each time, and holds rows, movements, coverage and facts", async () => {
  expect((await bundle("2025-05")).equals(may)).toBe(true);
  const [head = "", ...lines] = may.toString("utf8").split("\n");
  const { manifest_lines: count } = JSON.parse(head) as { manifest_lines: number };
  const members = membersOf(lines.slice(0, count).join("\n"));
  expect(members.map(({ name }) => name)).toEqual(
    expect.arrayContaining(["reports/month-end/rows", "movements", "coverage", "findings", "runs"]),
  );
  expect(may.toString("utf8")).toContain('["closed_by","Anna Müller"]');
});

test("the script verifies bundles and their chain with nothing but node, also through a link", async () => {
  const [mayFile, juneFile, link] = ["may", "june", "link.mjs"].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  await Promise.all([writeFile(mayFile, may), writeFile(juneFile, june), symlink(script, link)]);
  for (const program of [script, link]) {
    const { code, out } = await run(program, juneFile, mayFile);
    expect(out).toMatch(/^2025-05 is what was sealed: PASS, closed by Anna Müller at .*after none: it is the first\./);
    expect(out).toMatch(/\n2025-06 is what was sealed: PASS/);
    expect(code).toBe(0);
  }
  expect((await run(script, juneFile)).code).toBe(0);

  const cut = join(folder, "cut");
  await writeFile(cut, may.subarray(0, -1));
  const differs = await run(script, cut, juneFile);
  expect(differs.code).toBe(3);
  expect(differs.out).toContain(`${cut} DIFFERS: it is cut off in the middle of a line.`);
  expect((await run(script)).code).toBe(64);
  expect((await run(script, join(folder, "nowhere"))).code).toBe(2);
});

describe("the verifier", () => {
  const verify = (...chunks: Buffer[]) => verifier.verifyBundle(chunks);

  test("takes the bytes in whatever pieces they come", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(may.length), { maxLength: 20 }), async (cuts) => {
        const ends = [...cuts.toSorted((a, b) => a - b), may.length];
        const pieces = ends.map((end, n) => may.subarray(n === 0 ? 0 : ends[n - 1], end));
        expect((await verify(...pieces)).facts["month"]).toBe("2025-05");
      }),
      { numRuns: 30 },
    );
  });

  test("notices any byte that is changed, left out or put in, wherever it is", async () => {
    const place = fc.nat(may.length - 1);
    const anyEdit = fc.oneof(
      fc.record({ at: place, xor: fc.integer({ min: 1, max: 255 }) }),
      fc.record({ at: place, left: fc.integer({ min: 1, max: 400 }) }),
      fc.record({ at: place, put: fc.uint8Array({ minLength: 1, maxLength: 5 }) }),
    );
    await fc.assert(
      fc.asyncProperty(anyEdit, async (given) => {
        const edited = withEdit(may, given);
        fc.pre(!edited.equals(may));
        await expect(verify(edited)).rejects.toThrow(/./);
      }),
      { numRuns: 1_500 },
    );
  });

  test("notices one byte of each member, and names the member", async () => {
    const lines = may.toString("utf8").split("\n");
    const { manifest_lines: count } = JSON.parse(lines[0] ?? "") as { manifest_lines: number };
    let at = 1 + count;
    let seen = 0;
    for (const { name, lines: size } of membersOf(lines.slice(1, at).join("\n"))) {
      if (size > 0) {
        const line = lines[at] ?? "";
        const edited = lines.with(
          at,
          line.replace(/[a-z0-9]/, (c) => (c === "a" ? "b" : "a")),
        );
        await expect(verify(Buffer.from(edited.join("\n")))).rejects.toThrow(`${name} differs from what was sealed`);
        seen += 1;
      }
      at += size;
    }
    expect(seen).toBeGreaterThan(30);
    expect(lines.slice(at)).toEqual([""]);
  });

  test("notices lines that change places, and a bundle that another one follows", async () => {
    const lines = may.toString("utf8").split("\n");
    for (let at = 0; at + 2 < lines.length; at++) {
      const [first = "", second = ""] = lines.slice(at, at + 2);
      if (first === second) continue;
      const swapped = lines.with(at, second).with(at + 1, first);
      await expect(verify(Buffer.from(swapped.join("\n")))).rejects.toThrow(/./);
    }
    await expect(verify(may, june)).rejects.toThrow("it goes on after its last member");
    await expect(verify()).rejects.toThrow("it ends before its first line");
  });

  test("holds each bundle against the month before it", async () => {
    const [first, second] = [await verify(may), await verify(june)];
    expect(verifier.brokenLinks([first, second])).toEqual([]);
    expect(verifier.brokenLinks([{ ...first, sha256: "0" }, second])).toEqual([
      "2025-06 was sealed after another 2025-05 than the one that was given",
    ]);
    const april = { ...first, facts: { ...first.facts, month: "2025-04" } };
    expect(verifier.brokenLinks([april, second])).toEqual([
      "2025-04 and 2025-06 do not follow each other: give the bundles in between",
    ]);
  });
});

const withEdit = (bytes: Buffer, given: { at: number; xor?: number; left?: number; put?: Uint8Array }) => {
  const { at, xor, left = 0, put = new Uint8Array() } = given;
  if (xor !== undefined) {
    const edited = Buffer.from(bytes);
    edited[at] = (edited[at] ?? 0) ^ xor;
    return edited;
  }
  return Buffer.concat([bytes.subarray(0, at), put, bytes.subarray(at + left)]);
};

test("a month that is not closed, or differs from its seal, is not exported", async () => {
  await expect(bundle("2025-07")).rejects.toThrow("2025-07 is not closed. 2025-05 to 2025-06 are closed.");
  await database.db.transaction(async (trx) => {
    await trx.raw("set local session_replication_role = replica");
    await trx.raw("update reports.closed_rows set cells[1] = 'x' where close = 1 and report = 'refunds'");
    await trx.raw("update reports.closed_movements set amount = 1 where close = 1");
  });
  await expect(bundle("2025-05")).rejects.toThrow("The close of 2025-05 does not match what was sealed: movements");
});
