import { findVersion } from "../../engine/api-versions.ts";
import type { Settings } from "../../engine/settings.ts";
import { isLoopbackHost } from "../../../../platform/http/listen.ts";

export interface EndpointSecret {
  readonly value: string;
  /** Null for the newest secret. */
  readonly valid_until: string | null;
}

export interface WebhookEndpointRecord {
  readonly id: string;
  readonly url: string;
  readonly description: string | null;
  readonly enabled_events: readonly string[];
  readonly status: "enabled" | "disabled";
  readonly api_version: string;
  readonly api_version_pinned_at: string | null;
  /** Newest first. */
  readonly secrets: readonly EndpointSecret[];
  readonly created_at: string;
  readonly updated_at: string;
}

/** An endpoint as it is at `nowIso`, without its secrets. */
export function webhookEndpointBody(endpoint: WebhookEndpointRecord, nowIso: string): Record<string, unknown> {
  const { secrets, ...body } = endpoint;
  const previous = secrets.find((secret) => secret.valid_until !== null);
  const rotationEndsAt = previous?.valid_until ?? null;
  const isPending = rotationEndsAt !== null && rotationEndsAt > nowIso;
  const version = findVersion(endpoint.api_version);
  return {
    ...body,
    has_pending_rotation: isPending,
    rotation_expires_at: isPending ? rotationEndsAt : null,
    api_version_deprecated: version?.deprecated ?? false,
    api_version_sunset: version?.sunset ?? null,
  };
}

/** The secrets that sign at `nowIso`, newest first. */
export function liveSecrets(endpoint: WebhookEndpointRecord, nowIso: string): string[] {
  return endpoint.secrets
    .filter(({ valid_until }) => valid_until === null || valid_until > nowIso)
    .map(({ value }) => value);
}

export type UrlCheck = "ok" | "malformed" | "insecure";

/** Checks a webhook URL: https, and http where the setting `allow_http_endpoints` permits it. */
export function checkWebhookUrl(text: string, allowHttp: Settings["allow_http_endpoints"]): UrlCheck {
  if (!URL.canParse(text)) return "malformed";
  const url = new URL(text);
  if (url.protocol === "https:") return "ok";
  if (url.protocol !== "http:") return "malformed";
  if (allowHttp === true) return "ok";
  return allowHttp === "loopback" && isLoopbackHost(url.hostname) ? "ok" : "insecure";
}
