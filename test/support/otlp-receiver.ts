import { once } from "node:events";
import { type IncomingHttpHeaders, createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** A span as OTLP's JSON has it, with its attributes as an object. */
export interface ReceivedSpan {
  name: string;
  service: string;
  traceId: string;
  spanId: string;
  parentSpanId: string | null;
  kind: number;
  links: { traceId: string; spanId: string }[];
  attributes: Record<string, unknown>;
  isError: boolean;
  startMs: number;
  endMs: number;
}

export interface OtlpReceiver {
  url: string;
  spans: ReceivedSpan[];
  /** Every request as received. */
  requests: { path: string; headers: IncomingHttpHeaders; body: string }[];
  /** Resolves with the spans once they are complete. */
  until(isComplete: (spans: readonly ReceivedSpan[]) => boolean): Promise<readonly ReceivedSpan[]>;
  close(): Promise<void>;
}

/** The kind of its answers: proper, with this status and text, or none. */
export type OtlpAnswer = "accepted" | "never" | { status: number; body: string };

interface OtlpValue {
  stringValue?: string;
  intValue?: number | string;
  boolValue?: boolean;
  arrayValue?: { values: OtlpValue[] };
}

type OtlpAttributes = { key: string; value: OtlpValue }[];

interface OtlpRequest {
  resourceSpans: {
    resource: { attributes: OtlpAttributes };
    scopeSpans: {
      spans: {
        name: string;
        traceId: string;
        spanId: string;
        parentSpanId?: string;
        kind: number;
        links?: { traceId: string; spanId: string }[];
        attributes: OtlpAttributes;
        status?: { code?: number };
        startTimeUnixNano: string;
        endTimeUnixNano: string;
      }[];
    }[];
  }[];
}

/** A collector of traces, on a free port: OTLP by HTTP, in JSON. */
export async function startOtlpReceiver(answer: OtlpAnswer = "accepted"): Promise<OtlpReceiver> {
  const spans: ReceivedSpan[] = [];
  const requests: OtlpReceiver["requests"] = [];
  const watchers = new Set<() => void>();
  const server = createServer((req, res) => {
    const chunks: Buffer[] = [];
    req.on("data", (chunk: Buffer) => chunks.push(chunk));
    req.on("end", () => {
      const body = Buffer.concat(chunks).toString();
      requests.push({ path: req.url ?? "", headers: req.headers, body });
      if (answer === "accepted") spans.push(...spansOf(JSON.parse(body) as OtlpRequest));
      for (const watch of watchers) watch();
      if (answer === "never") return;
      const { status, body: text } = answer === "accepted" ? { status: 200, body: '{"partialSuccess":{}}' } : answer;
      res.writeHead(status, { "content-type": "application/json" }).end(text);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    requests,
    until: (isComplete) =>
      new Promise((resolve) => {
        const watch = (): void => {
          if (!isComplete(spans)) return;
          watchers.delete(watch);
          resolve(spans);
        };
        watchers.add(watch);
        watch();
      }),
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

const spansOf = ({ resourceSpans }: OtlpRequest): ReceivedSpan[] =>
  resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map((span) => ({
        name: span.name,
        service: String(attributesOf(resource.attributes)["service.name"]),
        traceId: span.traceId,
        spanId: span.spanId,
        parentSpanId: span.parentSpanId ?? null,
        kind: span.kind,
        links: (span.links ?? []).map(({ traceId, spanId }) => ({ traceId, spanId })),
        attributes: attributesOf(span.attributes),
        isError: span.status?.code === 2,
        startMs: Number(BigInt(span.startTimeUnixNano) / 1_000_000n),
        endMs: Number(BigInt(span.endTimeUnixNano) / 1_000_000n),
      })),
    ),
  );

const attributesOf = (attributes: OtlpAttributes): Record<string, unknown> =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, valueOf(value)]));

const valueOf = ({ stringValue, intValue, boolValue, arrayValue }: OtlpValue): unknown =>
  stringValue ??
  boolValue ??
  (intValue === undefined ? undefined : Number(intValue)) ??
  arrayValue?.values.map(valueOf);
