import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, inject, test } from "vitest";
import { useTestDatabase } from "../support/use-database.ts";

const database = useTestDatabase();

/** A system that has no name for its user, as in a container with a uid of its own. */
const nameless = `data:text/javascript,${encodeURIComponent(
  'import os from "node:os"; import { syncBuiltinESMExports } from "node:module";' +
    'os.userInfo = () => { throw new Error("ENOENT: no such user"); }; syncBuiltinESMExports();',
)}`;

async function run(...args: string[]) {
  const child = spawn(process.execPath, ["--import", nameless, inject("program"), ...args], {
    env: { PATH: process.env["PATH"] ?? "", DATABASE_URL: database.url },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => (output += text));
  }
  const [code] = (await once(child, "close")) as [number | null];
  return { code, output };
}

test("help of every command comes without a name for who runs it", async () => {
  const { code, output } = await run("--help");
  expect(code, output).toBe(0);
  for (const name of ["alerts", "customers", "findings", "close"]) expect(output).toContain(name);
});

test.each([
  [["findings", "ack", "1", "--note", "known"]],
  [["alerts", "ack", "1"]],
  [["customers", "erase", "customer-1", "--yes"]],
  [["close", "2026-01", "--yes"]],
  [["heal", "order", "ord_1", "--from-service", "--reason", "spoiled", "--yes"]],
])("%j asks for --by where the system does not tell who runs it", async (args) => {
  const { code, output } = await run(...args);
  expect(output).toContain("Name them: --by NAME");
  expect(code).toBe(64);
});
