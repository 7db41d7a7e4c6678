export interface EndpointSecret {
  readonly value: string;
  /** Null on the newest one. */
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
