import { firstMerchant } from "./keys.ts";
import type { Mode } from "./mode.ts";

/**
 * The gateway's `security_key` of a merchant and environment. The service's API keys do not work at the gateway, nor the other way
 * round (statement 224).
 */
export function gatewayKey(merchant: string, mode: Mode): string {
  return merchant === firstMerchant ? `gateway_${mode}_sandbox` : `gateway_${mode}_${merchant}`;
}
