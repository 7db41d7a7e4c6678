import { listWebhookEndpoints } from "../../../../core/contract/resources/webhook-endpoints.ts";
import type { Snapshot } from "./compare.ts";

/** The sandbox's controls, and the calls of its API for the webhook endpoint. */
export interface SandboxCalls {
  registerEndpoint(webhookUrl: string): Promise<{ id: string; signingSecret: string }>;
  /** The id of the endpoint that `registerEndpoint` created; null if there is none. */
  findEndpoint(): Promise<string | null>;
  /** Changes the endpoint's URL. Pending deliveries go to the new one. */
  moveEndpoint(id: string, webhookUrl: string): Promise<void>;
  /** Removes the endpoint and its pending deliveries. */
  removeEndpoint(id: string): Promise<void>;
  control<T>(method: "GET" | "POST" | "PUT", path: string, body?: unknown): Promise<T>;
  snapshot(): Promise<Snapshot>;
}

/** `signal` aborts the calls in progress, which then reject with its reason. */
export function createSandboxCalls(baseUrl: string, apiKey: string, signal: AbortSignal | null = null): SandboxCalls {
  async function call<T>(method: string, path: string, body: unknown, headers: Record<string, string>): Promise<T> {
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
      throw new Error(`${method} ${path} at the sandbox: ${response.status} ${await response.text()}`);
    }
    return (await response.json()) as T;
  }
  const endpoints = <T>(method: string, path: string, body?: object): Promise<T> =>
    call<T>(method, `/v1${listWebhookEndpoints.path}${path}`, body, {
      authorization: `Bearer ${apiKey}`,
      "x-svc-idempotency-key": crypto.randomUUID(),
    });
  return {
    registerEndpoint: async (url) => {
      const wanted = { url, enabled_events: ["*"], description: ownDescription };
      const made = await endpoints<{ id: string; signing_secret: string }>("POST", "", wanted);
      return { id: made.id, signingSecret: made.signing_secret };
    },
    findEndpoint: async () => {
      const { data } = await endpoints<{ data: Described[] }>("GET", "");
      return data.find(({ description }) => description === ownDescription)?.id ?? null;
    },
    moveEndpoint: async (id, url) => void (await endpoints("PATCH", `/${id}`, { url })),
    removeEndpoint: async (id) => void (await endpoints("DELETE", `/${id}`)),
    control: (method, path, body) => call(method, `/_sandbox${path}`, body, {}),
    snapshot: async () => {
      const state = await call<Record<string, unknown>>("GET", "/_sandbox/snapshot", undefined, {});
      return snapshotOf(state);
    },
  };
}

interface Described {
  id: string;
  description: string | null;
}

/** Identifies our own endpoint among others. */
const ownDescription = "Tallyhook on this machine";

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
