import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { benchDirectory } from "./places.ts";

/** The peer, and the versions that it ran with when it was measured. */
export const peerName = "@supabase/stripe-sync-engine";
const versions: Readonly<Record<string, string>> = {
  [peerName]: "0.48.5",
  pg: "8.23.1",
  stripe: "23.1.0",
};
export const peerVersion = versions[peerName];

const installWithinMs = 120_000;

/**
 * Installs the peer into a folder of its own, unless it is there. It is no dependency of this project. Returns the
 * folder, or why it could not be installed, in one line.
 */
export async function installPeer(): Promise<{ directory: string } | { problem: string }> {
  const directory = join(benchDirectory, "peer");
  if (isInstalled(directory)) return { directory };
  await mkdir(directory, { recursive: true });
  await writeFile(join(directory, "package.json"), JSON.stringify({ private: true, dependencies: versions }, null, 2));
  const quietly = ["--no-audit", "--no-fund", "--no-package-lock", "--fetch-retries=0", "--loglevel=error"];
  const args = ["install", "--ignore-scripts", ...quietly];
  try {
    await promisify(execFile)("npm", args, { cwd: directory, timeout: installWithinMs });
  } catch (error) {
    return {
      problem: `${peerName} ${peerVersion} is not installed, and npm could not fetch it (${firstError(error)})`,
    };
  }
  return isInstalled(directory)
    ? { directory }
    : { problem: `npm installed no ${peerName} ${peerVersion} in ${directory}` };
}

const isInstalled = (directory: string): boolean =>
  Object.entries(versions).every(([name, version]) => {
    const file = join(directory, "node_modules", name, "package.json");
    if (!existsSync(file)) return false;
    return (JSON.parse(readFileSync(file, "utf8")) as { version: string }).version === version;
  });

function firstError(error: unknown): string {
  const { stderr, killed } = error as { stderr?: string; killed?: boolean };
  if (killed === true) return `it took longer than ${installWithinMs / 1_000} s`;
  const line = /^npm (?:error|ERR!) (.+)$/m.exec(stderr ?? "")?.[1];
  return line ?? (error instanceof Error ? (error.message.split("\n", 1)[0] ?? "") : String(error));
}
