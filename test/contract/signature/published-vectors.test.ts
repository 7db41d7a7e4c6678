import { describe, expect, it } from "vitest";
import { hmacSha256, standardWebhooksKey } from "../../../src/core/contract/signature/verification.ts";
import { signatureScheme } from "../../../src/core/contract/signature/signature-scheme.ts";
import { githubHex, muxTimestamped, rfc4231, standardWebhooks } from "./published-vectors.ts";

const always = { notBefore: null, notAfter: null };

describe("published vectors", () => {
  it.each(rfc4231)("RFC 4231, case $case", ({ key, data, digest }) => {
    const bytes = Buffer.from(data, "hex");
    expect(hmacSha256(Buffer.from(key, "hex"), [bytes]).toString("hex")).toBe(digest);
    const halves = [bytes.subarray(0, 3).toString("latin1"), bytes.subarray(3)];
    expect(hmacSha256(Buffer.from(key, "hex"), halves).toString("hex")).toBe(digest);
  });

  it("GitHub's, for the hex scheme", () => {
    const verification = signatureScheme("hex").verify({
      rawHeaders: ["SVC-Signature", githubHex.signature],
      body: Buffer.from(githubHex.body),
      secrets: [{ id: "github", value: githubHex.secret, ...always }],
      now: new Date(),
      toleranceSeconds: 300,
    });
    expect(verification).toEqual({ ok: true, secretId: "github" });
  });

  it("Mux's, for the svc scheme", () => {
    const headers = signatureScheme("svc").sign({
      body: Buffer.from(muxTimestamped.body),
      secrets: [muxTimestamped.secret],
      at: new Date(muxTimestamped.seconds * 1000),
      messageId: "unused",
    });
    expect(headers).toEqual({ "SVC-Signature": muxTimestamped.header });
  });

  it("Mux's is not verified here, since its secret of 14 bytes could be guessed", () => {
    const verification = signatureScheme("svc").verify({
      rawHeaders: ["SVC-Signature", muxTimestamped.header],
      body: Buffer.from(muxTimestamped.body),
      secrets: [{ id: "mux", value: muxTimestamped.secret, ...always }],
      now: new Date(muxTimestamped.seconds * 1000),
      toleranceSeconds: 300,
    });
    expect(verification).toEqual({ ok: false, reason: "no_secret" });
  });

  it.each([
    ["with its prefix", standardWebhooks.secret],
    ["without its prefix", standardWebhooks.secret.slice("whsec_".length)],
  ])("Standard Webhooks', secret %s", (_case, value) => {
    const at = new Date(standardWebhooks.seconds * 1000);
    const body = Buffer.from(standardWebhooks.body);
    const headers = {
      "webhook-id": standardWebhooks.id,
      "webhook-timestamp": String(standardWebhooks.seconds),
      "webhook-signature": standardWebhooks.signature,
    };
    const scheme = signatureScheme("standard-webhooks");
    expect(scheme.sign({ body, secrets: [value], at, messageId: standardWebhooks.id })).toEqual(headers);
    const verification = scheme.verify({
      rawHeaders: Object.entries(headers).flat(),
      body,
      secrets: [{ id: "standard", value, ...always }],
      now: at,
      toleranceSeconds: 0,
    });
    expect(verification).toEqual({ ok: true, secretId: "standard" });
    expect(standardWebhooksKey(value)).toHaveLength(24);
  });
});
