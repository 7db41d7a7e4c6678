import { basename } from "node:path";
import { readDownHosts } from "../dispatch/handler-hosts.ts";
import type { DownHost } from "../../../app/answers.ts";
import { counted, someOf, withoutControls } from "../../../platform/readable-text.ts";
import type { Runtime } from "../../../app/runtime.ts";
import { type CheckResult, failed, ok, warning } from "../../../app/check-result.ts";

/** Checks that the processes of handlers run, from the reports of their supervisors. */
export async function checkHandlers(runtime: Pick<Runtime, "db">): Promise<CheckResult> {
  return judgeHosts(await readDownHosts(await runtime.db(), { afterMinutes: 0 }));
}

function judgeHosts(hosts: readonly DownHost[]): CheckResult {
  const name = "handlers";
  const [longest] = hosts;
  if (longest === undefined) return ok(name, "no process or file of a handler is down");
  const files = [...new Set(hosts.flatMap((host) => host.files))].map((file) => basename(file));
  const detail =
    `${counted(files.length, "file does not run, or ends its process", "files do not run, or end their process")} ` +
    `(${withoutControls(someOf(files))}), since ${longest.downSince.toISOString()}: ${withoutControls(longest.reason)}`;
  const remedy = "fix what it names and restart the worker; the log of the worker has each exit";
  return hosts.some(({ isApart }) => !isApart)
    ? failed(name, detail, remedy)
    : warning(name, `${detail}; the others run`, remedy);
}
