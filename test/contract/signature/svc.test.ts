import { describe, expect, it } from "vitest";
import { hmacSha256, utf8Key } from "../../../src/core/contract/signature/verification.ts";
import { svcScheme } from "../../../src/core/contract/signature/schemes/svc.ts";

const now = new Date("2026-03-01T12:00:00.000Z");
const t = String(now.getTime() / 1000);
const value = "an-old-secret-of-32-characters!!";
const body = Buffer.from('{"id":"evt_1"}');

function hex(time = t, key = value): string {
  return hmacSha256(utf8Key(key), [`${time}.`, body]).toString("hex");
}

function verify(header: string): unknown {
  return svcScheme.verify({
    rawHeaders: ["SVC-Signature", header],
    body,
    secrets: [{ id: "s", value, notBefore: null, notAfter: null }],
    now,
    toleranceSeconds: 300,
  });
}

const accepted = { ok: true, secretId: "s" };
const malformed = { ok: false, reason: "malformed_header" };

describe("the SVC-Signature header", () => {
  it.each([
    ["t first", `t=${t},v1=${hex()}`],
    ["v1 first", `v1=${hex()},t=${t}`],
    ["spaces after commas", `t=${t}, v1=${hex()}`],
    ["unknown parts", `v0=abc,t=${t},scheme=x,v1=${hex()},v2=,=,`],
    ["a wrong v1 before the right one", `t=${t},v1=${"0".repeat(64)},v1=${hex()}`],
    ["an unreadable v1 beside the right one", `t=${t},v1=,v1=${hex()},v1=zz`],
  ])("is accepted with %s", (_case, header) => {
    expect(verify(header)).toEqual(accepted);
  });

  it.each([
    ["garbage", "garbage"],
    ["no t", `v1=${hex()}`],
    ["no v1", `t=${t}`],
    ["two t", `t=${t},t=${t},v1=${hex()}`],
    ["two different t", `t=1,v1=${hex()},t=${t}`],
    ["an empty v1", `t=${t},v1=`],
    ["upper-case hex", `t=${t},v1=${hex().toUpperCase()}`],
    ["a v1 one digit short", `t=${t},v1=${hex().slice(1)}`],
    ["a v1 one digit long", `t=${t},v1=${hex()}0`],
    ["a base64 v1", `t=${t},v1=${Buffer.from(hex(), "hex").toString("base64")}`],
    ["an empty t", `t=,v1=${hex("")}`],
    ["a negative t", `t=-5,v1=${hex("-5")}`],
    ["a t that is no number", `t=noon,v1=${hex("noon")}`],
    ["a t with trailing letters", `t=123abc,v1=${hex("123abc")}`],
    ["a t with a fraction", `t=${t}.5,v1=${hex(`${t}.5`)}`],
    ["a t with an exponent", `t=1e9,v1=${hex("1e9")}`],
    ["a t in hex", `t=0x10,v1=${hex("0x10")}`],
    ["a t with a plus", `t=+${t},v1=${hex(`+${t}`)}`],
    ["a t beyond any date", `t=${"9".repeat(20)},v1=${hex("9".repeat(20))}`],
    ["non-ASCII digits", `t=\u00b2\u00b3,v1=${hex()}`],
    ["non-ASCII letters", `t=${t},v1=${"é".repeat(64)}`],
    ["capital names", `T=${t},V1=${hex()}`],
    ["seventeen v1", `t=${t},${`v1=${hex()},`.repeat(17)}`],
    ["a thousand v1", `t=${t},${"v1=a,".repeat(1000)}v1=${hex()}`],
    ["thousands of full v1", `t=${t},${`v1=${"0".repeat(64)},`.repeat(3000)}v1=${hex()}`],
    ["nothing but commas", ",".repeat(8000)],
  ])("is malformed with %s", (_case, header) => {
    expect(verify(header)).toEqual(malformed);
  });

  it("is signed over the digits of t as they stand", () => {
    expect(verify(`t=0${t},v1=${hex(`0${t}`)}`)).toEqual(accepted);
    expect(verify(`t=0${t},v1=${hex(t)}`)).toEqual({ ok: false, reason: "no_match" });
  });

  it("carries one v1 for each secret when it is signed during a rotation", () => {
    const next = "a-newer-secret-of-32-characters!";
    const headers = svcScheme.sign({ body, secrets: [next, value], at: now, messageId: "m" });
    expect(headers).toEqual({ "SVC-Signature": `t=${t},v1=${hex(t, next)},v1=${hex(t, value)}` });
    expect(verify(headers["SVC-Signature"] ?? "")).toEqual(accepted);
  });

  it("uses the whole secret as the key, whsec_ included", () => {
    const prefixed = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const verification = svcScheme.verify({
      rawHeaders: ["svc-signature", `t=${t},v1=${hex(t, prefixed)}`],
      body,
      secrets: [{ id: "p", value: prefixed, notBefore: null, notAfter: null }],
      now,
      toleranceSeconds: 300,
    });
    expect(verification).toEqual({ ok: true, secretId: "p" });
  });

  it("is refused in bounded time however many signatures it claims to hold", () => {
    const header = `t=${t},${"v1=,".repeat(2000)}`;
    const started = process.hrtime.bigint();
    for (let round = 0; round < 1000; round += 1) verify(header);
    expect(Number(process.hrtime.bigint() - started) / 1e9).toBeLessThan(5);
  });
});
