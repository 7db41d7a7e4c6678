import crypto from "node:crypto";
import { syncBuiltinESMExports } from "node:module";
import { afterEach, expect, it, vi } from "vitest";
import {
  type SigningSecret,
  hmacSha256,
  keyCache,
  matchSecret,
  utf8Key,
} from "../../../src/core/contract/signature/verification.ts";

const secret = { id: "s", value: "sixteen-bytes-ok", notBefore: null, notAfter: null };
const request = { secrets: [secret], now: new Date() };
const keyOf = keyCache(utf8Key);

afterEach(() => {
  vi.restoreAllMocks();
  syncBuiltinESMExports();
});

it.each([true, false])("leaves the verdict (%s) to the comparison in constant time alone", (verdict) => {
  const digest = hmacSha256(utf8Key(secret.value), ["x"]);
  const compare = vi.spyOn(crypto, "timingSafeEqual").mockReturnValue(verdict);
  syncBuiltinESMExports();
  const offered = [verdict ? Buffer.alloc(32) : digest, Buffer.alloc(32, 1)];
  const match = matchSecret(keyOf, request, ["x"], offered);
  expect(match.reason).toBe(verdict ? "match" : "no_match");
  expect(compare.mock.calls).toEqual(offered.map((each) => [each, digest]));
});

it("matches nothing, and does not throw, where a signature has another length than a digest", () => {
  const digest = hmacSha256(utf8Key(secret.value), ["x"]);
  const lengths = [Buffer.alloc(0), digest.subarray(0, 31), Buffer.concat([digest, digest])];
  expect(matchSecret(keyOf, request, ["x"], lengths)).toEqual({ reason: "no_match" });
  expect(matchSecret(keyOf, request, ["x"], [...lengths, digest])).toMatchObject({ secretId: "s" });
});

it("tries every live secret, also those after the one that matched, so that the time says nothing", () => {
  const digest = hmacSha256(utf8Key(secret.value), ["x"]);
  const others = ["a", "b"].map((id) => ({ ...secret, id, value: `another-secret-${id}` }));
  const tried: string[] = [];
  const noting = (each: SigningSecret) => {
    tried.push(each.id);
    return keyOf(each);
  };
  const secrets = [secret, ...others];
  expect(matchSecret(noting, { ...request, secrets }, ["x"], [digest])).toMatchObject({
    secretId: "s",
  });
  expect(tried).toEqual(["s", "a", "b"]);
});

it("names the first of two secrets with the same value", () => {
  const digest = hmacSha256(utf8Key(secret.value), ["x"]);
  const secrets = [{ ...secret, id: "first" }, secret];
  expect(matchSecret(keyOf, { ...request, secrets }, ["x"], [digest])).toMatchObject({
    secretId: "first",
  });
});
