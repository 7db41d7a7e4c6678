import { freePercent, freeText, readDiskSpace } from "../../../platform/disk-space.ts";
import type { Runtime } from "../../../app/runtime.ts";
import { type CheckResult, failed, ok, skipped, warning } from "../../../app/check-result.ts";

const limits = { warning: 10, failed: 2 };

/** Checks the disk of the embedded database. Nothing here can see the disk of another one. */
export async function checkDisk({ config }: Pick<Runtime, "config">): Promise<CheckResult[]> {
  const name = "disk";
  if (config.database !== "embedded") return [];
  const space = await readDiskSpace(config.dataDir);
  if (space === null) return [skipped(name, "the system does not report how full it is")];
  const free = freePercent(space);
  const detail = `${freeText(space)} free at ${space.folder}`;
  const remedy = "remove files that are not the database's, or make the disk larger";
  if (free < limits.failed) return [failed(name, detail, remedy)];
  return [free < limits.warning ? warning(name, detail, remedy) : ok(name, detail)];
}
