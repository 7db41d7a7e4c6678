import type { WebhookEndpointRecord } from "../records/webhook-endpoint.ts";
import { findVersion } from "../rules/versions.ts";

/** An endpoint as it stands at `nowIso`, never with a secret (spec, WebhookEndpoint). */
export function webhookEndpointBody(
  endpoint: WebhookEndpointRecord,
  nowIso: string,
): Record<string, unknown> {
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
