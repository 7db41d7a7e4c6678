import type { ApiKey } from "../keys.ts";
import { Refusal } from "../refusal.ts";
import { isAllowedAddress } from "../rules/allowlist.ts";

const keyShape = /^svc_(test|live)_sk_[A-Za-z0-9_-]+$/;

/** The key of a request (spec, Authentication). Throws a refusal that says what is wrong with it. */
export function authenticate(
  keys: ReadonlyMap<string, ApiKey>,
  request: { authorization: string | undefined; remoteAddress: string; nowMs: number },
): ApiKey {
  const { authorization, remoteAddress, nowMs } = request;
  if (authorization === undefined) {
    throw new Refusal("missing_api_key", "Send Authorization: Bearer <API key>.");
  }
  const match = /^Bearer (\S+)$/i.exec(authorization);
  if (match?.[1] === undefined || !keyShape.test(match[1])) {
    throw new Refusal("invalid_api_key_format", "The API key has not the form of one.");
  }
  const key = keys.get(match[1]);
  if (key === undefined) throw new Refusal("invalid_api_key", "No such API key.");
  if (key.revoked) throw new Refusal("revoked_api_key", "The API key was revoked.");
  if (key.expires_at !== null && Date.parse(key.expires_at) <= nowMs) {
    throw new Refusal("expired_api_key", "The API key has expired.");
  }
  if (key.allow !== null && !isAllowedAddress(remoteAddress, key.allow)) {
    throw new Refusal("ip_not_allowed", "The API key may not be used from this address.");
  }
  return key;
}
