import { BlockList, isIP } from "node:net";
import type { Permission } from "../../../core/contract/endpoint.ts";

/**
 * The environment of a key: `svc_test_sk_` keys are test, `svc_live_sk_` keys are live. Neither sees the other's
 * objects.
 */
export type Mode = "test" | "live";

export const modes: readonly Mode[] = ["test", "live"];

/** The merchant that exists from the start. */
export const firstMerchant = "merchant_1";

export interface ApiKey {
  readonly merchant: string;
  readonly mode: Mode;
  readonly permissions: readonly Permission[] | "all";
  readonly expires_at: string | null;
  readonly revoked: boolean;
  /** Addresses that may use the key; null is any. */
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

/** The keys that exist from the start. They are not secret. */
export function knownKeys(): Map<string, ApiKey> {
  return new Map<string, ApiKey>([
    [testKey, { mode: "test", ...unrestricted }],
    [liveKey, { mode: "live", ...unrestricted }],
  ]);
}

/**
 * The gateway's `security_key` of a merchant and environment. The service's API keys do not work at the gateway, and
 * this key does not work at the service.
 */
export function gatewayKey(merchant: string, mode: Mode): string {
  return merchant === firstMerchant ? `gateway_${mode}_sandbox` : `gateway_${mode}_${merchant}`;
}

/**
 * Whether an address matches an allowlist of addresses and CIDR ranges. The interface does not show how an allowlist is
 * configured.
 */
export function isAllowedAddress(address: string, allowed: readonly string[]): boolean {
  const plain = address.replace(/^::ffff:(?=\d+\.)/, "");
  const family = isIP(plain) === 6 ? "ipv6" : "ipv4";
  const list = new BlockList();
  for (const entry of allowed) {
    const [network = "", prefix] = entry.split("/");
    const entryFamily = isIP(network) === 6 ? "ipv6" : "ipv4";
    if (prefix === undefined) list.addAddress(network, entryFamily);
    else list.addSubnet(network, Number(prefix), entryFamily);
  }
  return list.check(plain, family);
}

/** Whether an entry is an address or a CIDR range. */
export function isAllowlistEntry(entry: string): boolean {
  const [network = "", prefix, ...more] = entry.split("/");
  const family = isIP(network);
  if (family === 0 || more.length > 0) return false;
  if (prefix === undefined) return true;
  return /^\d{1,3}$/.test(prefix) && Number(prefix) <= (family === 6 ? 128 : 32);
}
