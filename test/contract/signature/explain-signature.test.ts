import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type SignatureExplanation, explainSignature } from "../../../src/core/contract/signature/explain-signature.ts";
import { type SigningSecret, hmacSha256 } from "../../../src/core/contract/signature/verification.ts";
import { type SignatureSchemeName, signatureScheme } from "../../../src/core/contract/signature/signature-scheme.ts";
import { anyText } from "../../support/any-text.ts";

const now = new Date("2026-03-01T12:00:00Z");
const value = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const secret: SigningSecret = { id: "db:one", value, notBefore: null, notAfter: null };
const other: SigningSecret = { ...secret, id: "db:two", value: "whsec_b3RoZXItb3RoZXItb3RoZXI=" };
const json = Buffer.from('{"id":"evt_1","data":{"object":{"name":"Zoë","n":[1,2]}}}');
const t = String(now.getTime() / 1000);

function signed(name: SignatureSchemeName, parts: { body?: Buffer; at?: Date; by?: string } = {}): string[] {
  const { body = json, at = now, by = value } = parts;
  const headers = signatureScheme(name).sign({ body, secrets: [by], at, messageId: "msg_1" });
  return Object.entries(headers).flat();
}

function explain(
  rawHeaders: string[],
  parts: { body?: Buffer; secrets?: SigningSecret[]; configured?: SignatureSchemeName } = {},
): SignatureExplanation {
  const { body = json, secrets = [other, secret], configured = "svc" } = parts;
  return explainSignature({ rawHeaders, body, secrets, now, toleranceSeconds: 300 }, configured);
}

function adviceOn(...args: Parameters<typeof explain>): string {
  return explain(...args).advice.join("\n");
}

describe("a request that verifies", () => {
  it.each(["svc", "hex", "standard-webhooks"] as const)("is said to, under %s", (configured) => {
    const explanation = explain(signed(configured), { configured });
    expect(explanation.verification).toEqual({ ok: true, secretId: "db:one" });
    expect(explanation.advice).toEqual([`The request verifies: scheme ${configured}, secret db:one.`]);
    expect(explanation.matches[0]).toMatchObject({ scheme: configured, body: "none" });
  });
});

describe("the scheme", () => {
  it.each([
    ["svc", "hex"],
    ["svc", "standard-webhooks"],
    ["hex", "svc"],
    ["hex", "standard-webhooks"],
    ["standard-webhooks", "svc"],
    ["standard-webhooks", "hex"],
  ] as const)("%s is recognised while %s is configured", (used, configured) => {
    const explanation = explain(signed(used), { configured });
    expect(explanation.matches[0]).toMatchObject({
      scheme: used,
      secretId: "db:one",
      body: "none",
    });
    expect(explanation.advice.join()).toContain(`set it to ${used}`);
  });
});

describe("the time", () => {
  it.each([
    [-412, "was made 412 s before", 412],
    [301, "was made 301 s after", -301],
  ])("off by %i s is said, with the signature right", (seconds, text, ageSeconds) => {
    const at = new Date(now.getTime() + seconds * 1000);
    const explanation = explain(signed("svc", { at }));
    expect(explanation.ageSeconds).toBe(ageSeconds);
    expect(explanation.advice.join()).toContain(`The signature is right, but it ${text}`);
  });

  it("in milliseconds is recognised", () => {
    const digest = hmacSha256(Buffer.from(value), [`${now.getTime()}.`, json]).toString("hex");
    const advice = adviceOn(["SVC-Signature", `t=${now.getTime()},v1=${digest}`]);
    expect(advice).toContain("db:one made this signature");
    expect(advice).toContain("milliseconds");
  });

  it("is not there under hex", () => {
    expect(explain(signed("hex"), { configured: "hex" }).ageSeconds).toBeNull();
  });
});

describe("the body", () => {
  const text = json.toString();
  const pretty = JSON.stringify(JSON.parse(text), null, 2);
  it.each([
    ["a final newline was added", text, `${text}\n`, "line break or space that was not signed"],
    ["a final newline was removed", `${text}\n`, text, "line break that the captured body lacks"],
    ["LF became CRLF", pretty, pretty.replaceAll("\n", "\r\n"), "has CRLF where LF was signed"],
    ["CRLF became LF", pretty.replaceAll("\n", "\r\n"), pretty, "has LF where CRLF was signed"],
    ["a BOM was added", text, `\ufeff${text}`, "byte order mark"],
    ["it was parsed and indented", text, pretty, "parsed and written again"],
    ["it was parsed and compacted", pretty, text, "parsed and written again"],
    ["it was written with spaces", spaced(text), text, "parsed and written again"],
    ["its escapes were resolved", text.replace("ë", "\\u00eb"), text, "parsed and written again"],
  ])("is said to be changed where %s", (_case, sent, captured, expected) => {
    const rawHeaders = signed("svc", { body: Buffer.from(sent) });
    const explanation = explain(rawHeaders, { body: Buffer.from(captured) });
    expect(explanation.verification.ok).toBe(false);
    expect(explanation.advice[0]).toContain("db:one made this signature");
    expect(explanation.advice.join()).toContain(expected);
  });

  it("that is another one altogether is said to be", () => {
    const advice = adviceOn(signed("svc"), { body: Buffer.from("{}") });
    expect(advice).toContain("None of the known secrets");
    expect(advice).toContain("db:two, db:one");
  });
});

function spaced(text: string): string {
  return text.replaceAll(":", ": ").replaceAll(",", ", ");
}

describe("the key", () => {
  const svcBy = (key: Buffer): string[] => [
    "SVC-Signature",
    `t=${t},v1=${hmacSha256(key, [`${t}.`, json]).toString("hex")}`,
  ];
  it.each([
    ["without whsec_", Buffer.from(value.slice(6)), "without whsec_"],
    ["decoded from base64", Buffer.from(value.slice(6), "base64"), "base64-decoded secret"],
    ["with a newline", Buffer.from(`${value}\n`), "line break at its end"],
  ])("%s is recognised", (_case, key, expected) => {
    expect(adviceOn(svcBy(key))).toContain(`The sender's key is`);
    expect(adviceOn(svcBy(key))).toContain(expected);
  });

  it("decoded from hex is recognised", () => {
    const hexSecret = { ...secret, value: "0123456789abcdef0123456789abcdef" };
    const rawHeaders = svcBy(Buffer.from(hexSecret.value, "hex"));
    expect(adviceOn(rawHeaders, { secrets: [hexSecret] })).toContain("hex-decoded secret");
  });

  it("of white space around it is recognised", () => {
    const padded = { ...secret, value: ` ${value}` };
    const advice = adviceOn(signed("svc"), { secrets: [padded] });
    expect(advice).toContain("without the white space around it");
    expect(advice).toContain("contains white space, so it is never used");
  });

  it("that is not live is named with its window", () => {
    const ended = { ...secret, notAfter: new Date("2026-02-01T00:00:00Z") };
    expect(adviceOn(signed("svc"), { secrets: [ended] })).toContain(
      "db:one is not live: ends 2026-02-01T00:00:00.000Z",
    );
  });

  it("that is too short is named", () => {
    const short = { ...secret, value: "short" };
    const advice = adviceOn(signed("svc", { by: "short" }), { secrets: [short] });
    expect(advice).toContain("has 5 bytes; at least 16 are needed, so it is never used");
  });

  it("is missing when none is known", () => {
    expect(adviceOn(signed("svc"), { secrets: [] })).toContain("No secret is known");
  });
});

describe("the header", () => {
  const digest = hmacSha256(Buffer.from(value), [`${t}.`, json]);
  it.each([
    ["in base64", `t=${t},v1=${digest.toString("base64")}`, "written in base64"],
    ["in upper case", `t=${t},v1=${digest.toString("hex").toUpperCase()}`, "upper-case hex"],
    ["of SHA-512", `t=${t},v1=${"0a".repeat(64)}`, "SHA-512"],
    ["of SHA-1", `sha1=${"0a".repeat(20)}`, "SHA-1"],
    ["of nothing", "hello", "holds no HMAC-SHA256"],
  ])("%s is recognised", (_case, header, expected) => {
    expect(adviceOn(["SVC-Signature", header])).toContain(expected);
  });

  it("in hex where base64 belongs is recognised", () => {
    const key = Buffer.from(value.slice(6), "base64");
    const hex = hmacSha256(key, [`msg_1.${t}.`, json]).toString("hex");
    const rawHeaders = ["webhook-id", "msg_1", "webhook-timestamp", t, "webhook-signature", `v1,${hex}`];
    expect(adviceOn(rawHeaders, { configured: "standard-webhooks" })).toContain("scheme wants base64");
  });

  it("that is missing or doubled is said to be", () => {
    expect(adviceOn(["Host", "x"])).toContain("There is no SVC-Signature");
    expect(adviceOn([...signed("svc"), ...signed("svc")])).toContain("more than once");
  });
});

it("never throws and never shows a secret", () => {
  const header = fc.oneof(anyText(), fc.constantFrom("SVC-Signature", "webhook-id"));
  fc.assert(
    fc.property(fc.array(header), fc.uint8Array({ maxLength: 50 }), (rawHeaders, bytes) => {
      const explanation = explain(rawHeaders, { body: Buffer.from(bytes) });
      expect(explanation.advice.length).toBeGreaterThan(0);
      expect(JSON.stringify(explanation)).not.toContain(value);
    }),
  );
});
