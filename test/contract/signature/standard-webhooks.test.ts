import { describe, expect, it } from "vitest";
import { standardWebhooksScheme } from "../../../src/core/contract/signature/schemes/standard-webhooks.ts";

const now = new Date("2026-03-01T12:00:00.000Z");
const value = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const body = Buffer.from('{"id":"evt_1"}');
const signed = standardWebhooksScheme.sign({ body, secrets: [value], at: now, messageId: "msg_1" });
const signature = signed["webhook-signature"] ?? "";

function verify(headers: Record<string, string>, secretValue = value): unknown {
  return standardWebhooksScheme.verify({
    rawHeaders: Object.entries({ ...signed, ...headers }).flat(),
    body,
    secrets: [{ id: "s", value: secretValue, notBefore: null, notAfter: null }],
    now,
    toleranceSeconds: 300,
  });
}

const accepted = { ok: true, secretId: "s" };
const malformed = { ok: false, reason: "malformed_header" };

describe("the Standard Webhooks headers", () => {
  it.each([
    ["an asymmetric signature beside", `v1a,AAAA ${signature}`],
    ["a wrong signature before", `v1,${"A".repeat(43)}= ${signature}`],
    ["doubled spaces", `  ${signature}  `],
  ])("are accepted with %s", (_case, list) => {
    expect(verify({ "webhook-signature": list })).toEqual(accepted);
  });

  it.each([
    ["no version", signature.slice(3)],
    ["another version only", signature.replace("v1,", "v2,")],
    ["an empty signature", "v1,"],
    ["hex instead of base64", `v1,${Buffer.from(signature.slice(3), "base64").toString("hex")}`],
    ["padding left out", signature.slice(0, -1)],
    ["URL-safe letters", `v1,${"-_".repeat(21)}A=`],
    ["commas between", `${signature},${signature}`],
    ["a thousand signatures", `${"v1,a ".repeat(1000)}${signature}`],
  ])("are malformed with %s", (_case, list) => {
    expect(verify({ "webhook-signature": list })).toEqual(malformed);
  });

  it.each(["-1", "1.5", "123abc", "noon", "9".repeat(20)])("are malformed with time %s", (time) => {
    expect(verify({ "webhook-timestamp": time })).toEqual(malformed);
  });

  it("do not match under another id or time", () => {
    expect(verify({ "webhook-id": "msg_2" })).toEqual({ ok: false, reason: "no_match" });
    const later = String(now.getTime() / 1000 + 1);
    expect(verify({ "webhook-timestamp": later })).toEqual({ ok: false, reason: "no_match" });
  });

  it("are signed over the bytes of the id, also where these are no ASCII", () => {
    const headers = standardWebhooksScheme.sign({
      body,
      secrets: [value],
      at: now,
      messageId: "m\u00ff",
    });
    expect(verify(headers)).toEqual(accepted);
  });

  it.each(["whsec_", "whsec_***", "not base64 at all!", "whsec_c2hvcnQ="])(
    "are never verified by the unusable secret %s",
    (unusable) => {
      expect(verify({}, unusable)).toEqual({ ok: false, reason: "no_secret" });
    },
  );
});
