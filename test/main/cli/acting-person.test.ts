import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, inject, test } from "vitest";
import { requirePerson } from "../../../src/app/cli/acting-person.ts";
import { registerAlerts } from "../../../src/parts/alerts/cli/alerts.ts";
import { registerClose } from "../../../src/parts/reports/cli/close.ts";
import { registerCustomers } from "../../../src/main/cli/customers.ts";
import { registerFindings } from "../../../src/parts/reconcile/cli/findings.ts";
import { registerHeal } from "../../../src/parts/reconcile/cli/heal.ts";
import { exitCodes } from "../../../src/platform/errors.ts";
import { useTestDatabase } from "../../support/use-database.ts";
import { runCommand } from "./command-line.ts";

const database = useTestDatabase();

/** A system with another user; null has no name, as in a container with a uid of its own. */
const systemOf = (name: string | null): string =>
  `data:text/javascript,${encodeURIComponent(
    'import os from "node:os"; import { syncBuiltinESMExports } from "node:module";' +
      `os.userInfo = () => { if (${name === null}) throw new Error("ENOENT: no such user"); ` +
      `return { username: ${JSON.stringify(name)} }; }; syncBuiltinESMExports();`,
  )}`;

async function run(args: readonly string[], name: string | null, env: Record<string, string> = {}) {
  const child = spawn(process.execPath, ["--import", systemOf(name), inject("program"), ...args], {
    env: { PATH: process.env["PATH"] ?? "", DATABASE_URL: database.url, ...env },
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
  const { code, output } = await run(["--help"], null);
  expect(code, output).toBe(0);
  for (const name of ["alerts", "customers", "findings", "close"]) expect(output).toContain(name);
});

test("a command asks for --by where the system says that nobody in particular runs it", async () => {
  const { code, output } = await run(["alerts", "ack", "1"], "node");
  expect(output).toContain('Say who you are: --by "Your Name".');
  expect(code).toBe(64);
});

test.each([
  { register: registerFindings, args: ["findings", "ack", "1", "--note", "known"], name: null },
  { register: registerAlerts, args: ["alerts", "ack", "1"], name: "node" },
  {
    register: registerCustomers,
    args: ["customers", "erase", "customer-1", "--yes"],
    name: "root",
  },
  { register: registerClose, args: ["close", "2026-01", "--yes"], name: "root" },
  {
    register: registerHeal,
    args: ["heal", "order", "ord_1", "--from-service", "--reason", "spoiled", "--yes"],
    name: "app",
  },
] as const)("$args asks for --by where the system says that $name runs it", async ({ register, args, name }) => {
  const env = { DATABASE_URL: database.url };
  const user = { name, sudoUser: null };
  const { error } = await runCommand(register, [...args], { env, user });
  expect(error).toMatchObject({
    message: expect.stringContaining('Say who you are: --by "Your Name".') as string,
    exitCode: exitCodes.usage,
  });
});

test.each([
  ["the system's user", { name: "anna", sudoUser: null }, "anna"],
  ["who called sudo", { name: "root", sudoUser: "anna" }, "anna"],
  ["who called sudo, as another person", { name: "bob", sudoUser: "anna" }, "anna"],
  ["the system's user where root called sudo", { name: "bob", sudoUser: "root" }, "bob"],
  ["nobody, as sudo was called by root", { name: "root", sudoUser: "root" }, null],
  ["nobody, in the program's own image", { name: "node", sudoUser: null }, null],
  ["nobody, by a name of several lines", { name: "a\nb", sudoUser: null }, null],
])("whoever does something is %s", (_, user, person) => {
  if (person === null) expect(() => requirePerson(user)).toThrow("--by");
  else expect(requirePerson(user)).toBe(person);
});

test("sudo's user is read from its variable", async () => {
  const { output } = await run(["alerts", "ack", "1"], "root", { SUDO_USER: "anna" });
  expect(output).not.toContain("--by");
  expect(output).toContain('There is no alert "1".');
});
