import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type SignedRequest, type SigningSecret } from "../../../src/core/contract/signature/verification.ts";
import { signatureScheme, signatureSchemeNames } from "../../../src/core/contract/signature/signature-scheme.ts";
import { anyText } from "../../support/any-text.ts";

const now = new Date("2026-03-01T12:00:00.000Z");
const second = 1000;
const values = {
  old: "whsec_b2xkLW9sZC1vbGQtb2xkLW9sZC1vbGQ=",
  next: "whsec_bmV3LW5ldy1uZXctbmV3LW5ldy1uZXc=",
  other: "whsec_b3RoZXItb3RoZXItb3RoZXItb3RoZXI=",
};

function secret(id: keyof typeof values, window: Partial<SigningSecret> = {}): SigningSecret {
  return { id, value: values[id], notBefore: null, notAfter: null, ...window };
}

function request(parts: Partial<SignedRequest> & { headers?: Record<string, string> }): SignedRequest {
  const { headers, ...rest } = parts;
  return {
    rawHeaders: ["Host", "localhost", ...Object.entries(headers ?? {}).flat()],
    body: Buffer.from("{}"),
    secrets: [secret("next"), secret("old")],
    now,
    toleranceSeconds: 300,
    ...rest,
  };
}

describe.each(signatureSchemeNames)("%s", (name) => {
  const scheme = signatureScheme(name);
  const body = Buffer.from([0xef, 0xbb, 0xbf, 0x7b, 0x00, 0xff, 0x7d]);
  const sign = (by: keyof typeof values, at = now, bytes = body): Record<string, string> =>
    scheme.sign({ body: bytes, secrets: [values[by]], at, messageId: "msg_1" });

  it("verifies the bytes as they came, also a BOM, a NUL and invalid UTF-8", () => {
    expect(scheme.verify(request({ headers: sign("next"), body }))).toEqual({
      ok: true,
      secretId: "next",
    });
  });

  it("verifies an empty body", () => {
    const headers = sign("next", now, Buffer.alloc(0));
    expect(scheme.verify(request({ headers, body: Buffer.alloc(0) })).ok).toBe(true);
  });

  it("finds the header in any letter case", () => {
    const headers = Object.fromEntries(Object.entries(sign("old")).map(([key, value]) => [key.toUpperCase(), value]));
    expect(scheme.verify(request({ headers, body })).ok).toBe(true);
  });

  it("says which secret matched", () => {
    expect(scheme.verify(request({ headers: sign("old"), body }))).toEqual({
      ok: true,
      secretId: "old",
    });
  });

  it("refuses a right signature over other bytes", () => {
    for (const bytes of ["", "{}", "\ufeff{}"].map((text) => Buffer.from(text))) {
      expect(scheme.verify(request({ headers: sign("next"), body: bytes }))).toEqual({
        ok: false,
        reason: "no_match",
      });
    }
  });

  it("refuses every body that differs in one bit", () => {
    for (let bit = 0; bit < body.length * 8; bit += 1) {
      const altered = Buffer.from(body);
      altered[bit >> 3] = (altered[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      expect(scheme.verify(request({ headers: sign("next"), body: altered })).ok).toBe(false);
    }
  });

  it("refuses a secret nobody knows here", () => {
    expect(scheme.verify(request({ headers: sign("other"), body }))).toEqual({
      ok: false,
      reason: "no_match",
    });
  });

  it("refuses everything when there is no secret", () => {
    expect(scheme.verify(request({ headers: sign("next"), body, secrets: [] }))).toEqual({
      ok: false,
      reason: "no_secret",
    });
  });

  it.each(["", "short", "123456789012345"])("never verifies with the short secret %j", (value) => {
    const headers = scheme.sign({ body, secrets: [value], at: now, messageId: "msg_1" });
    const secrets = [{ ...secret("next"), value }];
    expect(scheme.verify(request({ headers, body, secrets })).ok).toBe(false);
  });

  it("lets a secret verify from its beginning, included, until its end, excluded", () => {
    const verify = (window: Partial<SigningSecret>): boolean =>
      scheme.verify(request({ headers: sign("old"), body, secrets: [secret("old", window)] })).ok;
    const at = (offset: number): Date => new Date(now.getTime() + offset);
    expect(verify({ notBefore: now })).toBe(true);
    expect(verify({ notBefore: at(1) })).toBe(false);
    expect(verify({ notAfter: at(1) })).toBe(true);
    expect(verify({ notAfter: now })).toBe(false);
    expect(verify({ notBefore: at(-1), notAfter: at(1) })).toBe(true);
    expect(verify({ notBefore: new Date(Number.NaN) })).toBe(false);
    expect(verify({ notAfter: new Date(Number.NaN) })).toBe(false);
  });

  it("verifies by the old and by the new secret while a rotation lasts", () => {
    const secrets = [
      secret("next", { notBefore: new Date(now.getTime() - 60 * second) }),
      secret("old", { notAfter: new Date(now.getTime() + 60 * second) }),
    ];
    for (const by of ["old", "next"] as const) {
      expect(scheme.verify(request({ headers: sign(by), body, secrets }))).toEqual({
        ok: true,
        secretId: by,
      });
    }
    const later = new Date(now.getTime() + 61 * second);
    const verifyLater = (by: "old" | "next"): boolean =>
      scheme.verify(request({ headers: sign(by, later), body, secrets, now: later })).ok;
    expect(verifyLater("old")).toBe(false);
    expect(verifyLater("next")).toBe(true);
  });

  it("tells a missing header", () => {
    expect(scheme.verify(request({ body }))).toEqual({ ok: false, reason: "missing_header" });
    expect(scheme.verify(request({ body, rawHeaders: [] }))).toEqual({
      ok: false,
      reason: "missing_header",
    });
  });

  it("refuses two copies of any of its headers, even equal ones", () => {
    const headers = sign("next");
    for (const [key, value] of Object.entries(headers)) {
      const rawHeaders = [...Object.entries(headers).flat(), key.toLowerCase(), value];
      expect(scheme.verify(request({ rawHeaders, body }))).toEqual({
        ok: false,
        reason: "duplicate_header",
      });
    }
  });

  it("refuses empty and endless headers", () => {
    const headers = sign("next");
    for (const key of Object.keys(headers)) {
      for (const value of ["", "a".repeat(8193)]) {
        expect(scheme.verify(request({ headers: { ...headers, [key]: value }, body }))).toEqual({
          ok: false,
          reason: "malformed_header",
        });
      }
    }
  });

  it("never throws and never accepts, whatever the headers and the body hold", () => {
    const noise = fc.oneof(
      anyText(),
      fc.string(),
      fc.constantFrom("svc-signature", "webhook-id", "webhook-timestamp", "webhook-signature"),
      fc.stringMatching(/^(t=-?\d{0,20}|v1=[0-9a-f]{0,70}|v1,[A-Za-z0-9+/=]{0,50}|,| )*$/),
    );
    fc.assert(
      fc.property(
        fc.array(noise, { maxLength: 12 }),
        fc.uint8Array({ maxLength: 64 }),
        fc.array(fc.record({ value: fc.string(), id: fc.string() }), { maxLength: 3 }),
        fc.date({ noInvalidDate: false }),
        fc.oneof(fc.double(), fc.constant(300)),
        (rawHeaders, bytes, secrets, at, toleranceSeconds) => {
          const verification = scheme.verify({
            rawHeaders,
            body: Buffer.from(bytes),
            secrets: secrets.map((each) => ({ ...each, notBefore: null, notAfter: null })),
            now: at,
            toleranceSeconds,
          });
          expect(verification.ok).toBe(false);
        },
      ),
      { numRuns: 500 },
    );
  });

  it("verifies whatever it signed", () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 300 }),
        fc.base64String({ minLength: 24, maxLength: 88 }),
        fc.date({ min: new Date(0), max: new Date("2200-01-01"), noInvalidDate: true }),
        (bytes, value, at) => {
          const signed = Buffer.from(bytes);
          const headers = scheme.sign({ body: signed, secrets: [value], at, messageId: "m" });
          const secrets = [{ id: "one", value, notBefore: null, notAfter: null }];
          const verification = scheme.verify(request({ headers, body: signed, secrets, now: at, toleranceSeconds: 1 }));
          expect(verification).toEqual({ ok: true, secretId: "one" });
        },
      ),
    );
  });
});

describe.each(["svc", "standard-webhooks"] as const)("%s, time", (name) => {
  const scheme = signatureScheme(name);
  const verify = (signedAt: Date, at = now, toleranceSeconds = 300): unknown => {
    const body = Buffer.from("{}");
    const headers = scheme.sign({ body, secrets: [values.old], at: signedAt, messageId: "m" });
    return scheme.verify(request({ headers, body, now: at, toleranceSeconds }));
  };
  const at = (offsetSeconds: number): Date => new Date(now.getTime() + offsetSeconds * second);
  const stale = { ok: false, reason: "stale", secretId: "old" };

  it("accepts both edges of the window and nothing outside", () => {
    expect(verify(at(-300))).toEqual({ ok: true, secretId: "old" });
    expect(verify(at(300))).toEqual({ ok: true, secretId: "old" });
    expect(verify(at(-301))).toEqual(stale);
    expect(verify(at(301))).toEqual(stale);
    expect(verify(at(0), new Date(now.getTime() + 300_001))).toEqual(stale);
  });

  it("names the secret of a signature that is right but far in the past or future", () => {
    expect(verify(new Date(0))).toEqual(stale);
    expect(verify(new Date("9999-12-31T23:59:59Z"))).toEqual(stale);
  });

  it("is stale, not an error, when a clock or the tolerance is no number", () => {
    expect(verify(now, now, Number.NaN)).toEqual(stale);
    expect(verify(now, now, -1)).toEqual(stale);
  });

  it("does not call a wrong signature stale", () => {
    const body = Buffer.from("{}");
    const headers = scheme.sign({ body, secrets: [values.other], at: at(-999), messageId: "m" });
    expect(scheme.verify(request({ headers, body }))).toEqual({ ok: false, reason: "no_match" });
  });
});
