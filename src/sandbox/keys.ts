import type { Permission } from "../service/routes/endpoint.ts";
import type { Mode } from "./mode.ts";

/** The merchant that every sandbox has from the start. */
export const firstMerchant = "merchant_1";

export interface ApiKey {
  readonly merchant: string;
  readonly mode: Mode;
  readonly permissions: readonly Permission[] | "all";
  readonly expires_at: string | null;
  readonly revoked: boolean;
  /** Addresses that may use it; null is any. */
  readonly allow: readonly string[] | null;
}

const unrestricted = {
  merchant: firstMerchant,
  permissions: "all",
  expires_at: null,
  revoked: false,
  allow: null,
} as const;

export const testKey = "svc_test_sk_sandbox";
export const liveKey = "svc_live_sk_sandbox";

/** The keys that every sandbox knows from the start. They are no secrets. */
export function knownKeys(): Map<string, ApiKey> {
  return new Map<string, ApiKey>([
    [testKey, { mode: "test", ...unrestricted }],
    [liveKey, { mode: "live", ...unrestricted }],
  ]);
}
