import { type CheckResult, failed, ok, skipped, warning } from "../../app/check-result.ts";
import type { Runtime } from "../../app/runtime.ts";
import type { EndpointRoom } from "./room-interfaces.ts";

export const endpointRoom: EndpointRoom = {
  watch:
    ({ config }) =>
    async (tools, run) => {
      const { watchEndpoint, webhookUrl } = await loadEndpoint();
      return watchEndpoint(tools, { url: webhookUrl(config.publicUrl), run });
    },
  check: examine,
  async remember(db, endpoint) {
    const { rememberEndpoint } = await loadEndpoint();
    await rememberEndpoint(db, { ...endpoint, rotationEndsAt: null });
  },
  async forget(db, id) {
    const { forgetEndpoint } = await loadEndpoint();
    await forgetEndpoint(db, id);
  },
};

/** On demand: few commands ask for the endpoint. */
const loadEndpoint = async () => ({
  ...(await import("../../parts/endpoint/endpoints.ts")),
  ...(await import("../../parts/endpoint/watch-endpoint.ts")),
});

async function examine(runtime: Runtime, database: CheckResult): Promise<CheckResult> {
  const { config } = runtime;
  if (config.service.kind === "sandbox") {
    return skipped("endpoint", "SVC_BASE_URL is not set, so the sandbox is the service");
  }
  if (database.status === "failed") return skipped("endpoint", "the database is not ready");
  const tools = { db: await runtime.db(), client: runtime.serviceClient() };
  const { inspectEndpoint, webhookUrl } = await loadEndpoint();
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
