import { spawnSync } from "node:child_process";

/** The first that rates a unit's sandbox without a running systemd, and that knows %d. */
const leastVersion = 250;

const [, version = "0"] =
  /^systemd (\d+)/.exec(spawnSync("systemd-analyze", ["--version"], { encoding: "utf8" }).stdout ?? "") ?? [];

export const systemdAnalyzes = Number(version) >= leastVersion;
