import { type CheckResult, failed, ok, skipped, warning } from "../../app/check-result.ts";
import type { Runtime } from "../../app/runtime.ts";
import { webhookUrl } from "./endpoints.ts";
import { inspectEndpoint } from "./inspect-endpoint.ts";

/** Checks this deployment's endpoint at the service. */
export async function checkEndpoint(runtime: Runtime, database: CheckResult): Promise<CheckResult> {
  const { config } = runtime;
  if (config.service.kind === "sandbox") {
    return skipped("endpoint", "SVC_BASE_URL is not set, so the sandbox is the service");
  }
  if (database.status === "failed") return skipped("endpoint", "the database is not ready");
  const tools = { db: await runtime.db(), client: runtime.serviceClient() };
  const report = await inspectEndpoint(tools, webhookUrl(config.publicUrl));
  if (report === null) {
    return warning("endpoint", "the endpoint's address is not known", "set PUBLIC_URL");
  }
  const [worst] = ["critical", "high", "warning"].flatMap((severity) =>
    report.problems.filter((problem) => problem.severity === severity),
  );
  if (worst === undefined) {
    return ok("endpoint", report.endpoints.map(({ id }) => `${id} is enabled`).join(", "));
  }
  const more = report.problems.length > 1 ? ` (and ${report.problems.length - 1} more)` : "";
  return worst.severity === "critical"
    ? failed("endpoint", worst.says + more, worst.remedy)
    : warning("endpoint", worst.says + more, worst.remedy);
}
