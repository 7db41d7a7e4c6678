import type { Snapshot } from "./compare.ts";

/** The sandbox's controls and the one call of its API that the demo makes by hand. */
export interface SandboxCalls {
  registerEndpoint(webhookUrl: string): Promise<string>;
  control<T>(method: "GET" | "POST" | "PUT", path: string, body?: unknown): Promise<T>;
  snapshot(): Promise<Snapshot>;
}

/** `signal` ends the calls under way, which then reject with its reason. */
export function createSandboxCalls(
  baseUrl: string,
  apiKey: string,
  signal: AbortSignal | null = null,
): SandboxCalls {
  async function call<T>(
    method: string,
    path: string,
    body: unknown,
    headers: Record<string, string>,
  ): Promise<T> {
    const response = await fetch(`${baseUrl}${path}`, {
      method,
      signal,
      headers: {
        ...headers,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (!response.ok) {
      throw new Error(
        `${method} ${path} at the sandbox: ${response.status} ${await response.text()}`,
      );
    }
    return (await response.json()) as T;
  }
  return {
    registerEndpoint: async (webhookUrl) => {
      const endpoint = await call<{ signing_secret: string }>(
        "POST",
        "/v1/webhook_endpoints",
        { url: webhookUrl, enabled_events: ["*"] },
        {
          authorization: `Bearer ${apiKey}`,
          "x-svc-idempotency-key": crypto.randomUUID(),
        },
      );
      return endpoint.signing_secret;
    },
    control: (method, path, body) => call(method, `/_sandbox${path}`, body, {}),
    snapshot: async () => {
      const state = await call<Record<string, unknown>>("GET", "/_sandbox/snapshot", undefined, {});
      return snapshotOf(state);
    },
  };
}

const list = (value: unknown): Record<string, unknown>[] =>
  Array.isArray(value) ? (value as Record<string, unknown>[]) : [];

function snapshotOf(state: Record<string, unknown>): Snapshot {
  const gone = state["hard_deleted"] as { customers?: string[] } | undefined;
  return {
    orders: list(state["orders"]),
    transactions: list(state["transactions"]),
    subscriptions: list(state["subscriptions"]),
    customers: list(state["customers"]),
    hardDeletedCustomers: gone?.customers ?? [],
  };
}
