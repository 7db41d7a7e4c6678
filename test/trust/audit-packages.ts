/**
 * `.ci/run` asks the registry what it knows of our packages: known vulnerabilities, and whether it signed them. Exit
 * code 1 for a finding. Where the registry cannot be asked, it says so and exits 0.
 */
import { spawnSync } from "node:child_process";
import { projectRoot } from "../support/project-root.ts";
import { type AuditOutcome, readSignatures, readVulnerabilities } from "./audit.ts";

const npm = (...args: string[]): string =>
  spawnSync("npm", [...args, "--json", "--fetch-retries=0", "--fetch-timeout=30000"], {
    cwd: projectRoot,
    encoding: "utf8",
    maxBuffer: 64 * 2 ** 20,
  }).stdout;

const outcomes: [string, AuditOutcome][] = [
  ["npm audit --omit=dev", readVulnerabilities(npm("audit", "--omit=dev"))],
  ["npm audit signatures", readSignatures(npm("audit", "signatures"))],
];
for (const [name, { says }] of outcomes) console.log(`${name}: ${says}`);
if (outcomes.some(([, { kind }]) => kind === "found")) process.exitCode = 1;
