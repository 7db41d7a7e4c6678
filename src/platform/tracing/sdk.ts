import { Agent as HttpAgent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { DiagLogLevel, context, diag, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from "@opentelemetry/resources";
import {
  BasicTracerProvider,
  BatchSpanProcessor,
  type IdGenerator,
  RandomIdGenerator,
} from "@opentelemetry/sdk-trace-base";
import type { RateLimitedWarnings } from "../rate-limited-warnings.ts";
import { foreignText, registerSecret } from "../redaction.ts";
import { parseHeaderPairs } from "./header-pairs.ts";
import { idsOfNextSpan } from "./tracing.ts";

export interface TracingSettings {
  /** The OTLP/HTTP receiver, without /v1/traces. */
  endpoint: string;
  /** Sent with each export; see `parseHeaderPairs`. */
  headers: string | null;
  /** Used where OTEL_SERVICE_NAME is not set. */
  serviceName: string;
  /** Unique to this deployment: ids of spans are derived from it. */
  deployment: string;
}

/**
 * The one file that imports OpenTelemetry's SDK; loaded only where spans are exported. The SDK itself reads the sampler,
 * the limits of spans, the queue's (`OTEL_BSP_…`) and the exporter's other settings from the environment.
 */
export function startSdk(
  warn: RateLimitedWarnings,
  { endpoint, headers, serviceName }: Omit<TracingSettings, "deployment">,
): { close(limitMs: number): Promise<void> } {
  diag.setLogger(diagnostics(warn), {
    logLevel: DiagLogLevel.WARN,
    suppressOverrideMessage: true,
  });
  const sent = headers === null ? {} : (parseHeaderPairs(headers) ?? {});
  Object.values(sent).forEach(registerSecret);
  // Of our own, so that closing it ends an export that hangs.
  const agents = {
    http: new HttpAgent({ keepAlive: true }),
    https: new HttpsAgent({ keepAlive: true }),
  };
  const exporter = new OTLPTraceExporter({
    url: `${endpoint.replace(/\/+$/, "")}/v1/traces`,
    headers: sent,
    httpAgentOptions: (protocol) => (protocol === "https:" ? agents.https : agents.http),
    concurrencyLimit: mostExports,
  });
  const provider = new BasicTracerProvider({
    resource: defaultResource()
      .merge(resourceFromAttributes({ "service.name": serviceName }))
      .merge(detectResources({ detectors: [envDetector] })),
    idGenerator: new GivenOrRandomIds(),
    spanProcessors: [new BatchSpanProcessor(exporter)],
  });
  const contexts = new AsyncLocalStorageContextManager().enable();
  context.setGlobalContextManager(contexts);
  trace.setGlobalTracerProvider(provider);
  return {
    async close(limitMs) {
      const flushed = provider.shutdown().then(() => null, reasonOf);
      const late = sleep(limitMs, "the process ends before the answer", { ref: false });
      const reason = await Promise.race([flushed, late]);
      if (reason !== null) warn(notExported, { reason: foreignText(reason, 300) });
      endConnections(agents.http);
      endConnections(agents.https);
      trace.disable();
      context.disable();
      diag.disable();
    },
  };
}

/**
 * Ends exports in progress and later ones with an error after which the SDK does not retry, since its timers would keep
 * the process alive. An export that waits after a collector's 503 ends at its next attempt, within five seconds.
 */
function endConnections(agent: HttpAgent): void {
  const ended = Object.assign(new Error("the process ends"), { code: "ERR_PROCESS_ENDS" });
  agent.createConnection = (_options, done) => {
    process.nextTick(() => done?.(ended, new Socket()));
    return undefined;
  };
  for (const socket of Object.values(agent.sockets).flat()) socket?.destroy(ended);
  agent.destroy();
}

/** Exports in progress: one, as a rule, and at the end of the process as many as the queue has batches. */
const mostExports = 5;

/** The ids that a span was given, or else random ones. */
class GivenOrRandomIds implements IdGenerator {
  readonly #random = new RandomIdGenerator();

  generateTraceId = (): string => idsOfNextSpan()?.traceId ?? this.#random.generateTraceId();
  generateSpanId = (): string => idsOfNextSpan()?.spanId ?? this.#random.generateSpanId();
}

const notExported = "spans could not be exported: the traces have gaps, and nothing else is affected";

/** Receives the SDK's messages, which may quote the other side's answer. */
function diagnostics(warn: RateLimitedWarnings) {
  const nothing = (): void => {};
  const tell =
    (message: string) =>
    (...said: unknown[]): void =>
      warn(message, { reason: foreignText(said.map(reasonOf).join(" "), 300) });
  return {
    error: tell(notExported),
    warn: tell("OpenTelemetry warns"),
    info: nothing,
    debug: nothing,
    verbose: nothing,
  };
}

/** An error that the SDK reports is JSON with a stack: its message is enough. */
function reasonOf(said: unknown): string {
  if (said instanceof Error) return said.message;
  if (typeof said !== "string") return "";
  try {
    const { message, code } = JSON.parse(said) as { message?: unknown; code?: unknown };
    return [message, code].filter((each) => typeof each === "string").join(" ");
  } catch {
    return said;
  }
}
