import { createHmac, randomBytes } from "node:crypto";
import { parseEventBody } from "../../src/core/contract/event-envelope.ts";
import { signatureScheme } from "../../src/core/contract/signature/signature-scheme.ts";
import { median } from "./statistics.ts";

export const raw = Buffer.from(JSON.stringify({ id: "evt_1", type: "order.paid", filler: randomBytes(600) }));

export const verified = "an event verified and parsed";
const scheme = signatureScheme("svc");
const now = new Date();
const secret = "whsec_of_a_benchmark";
const seconds = Math.floor(now.getTime() / 1_000);
const mac = createHmac("sha256", secret).update(`${seconds}.`).update(raw).digest("hex");
/** The least that an event costs: its signature is verified and its body parsed. */
export function verify(): unknown {
  const { ok } = scheme.verify({
    rawHeaders: ["svc-signature", `t=${seconds},v1=${mac}`],
    body: raw,
    secrets: [{ id: "bench", value: secret, notBefore: null, notAfter: null }],
    now,
    toleranceSeconds: 300,
  });
  if (!ok) throw new Error("the signature does not hold");
  return parseEventBody(raw);
}

/** Each cost compared with that of `verify`, which must be among them: a busy machine changes both alike. */
export function shareOfVerifying(costs: ReadonlyMap<string, number>): Record<string, string>[] {
  const least = costs.get(verified) ?? Number.NaN;
  return [...costs].map(([what, cost]) => ({
    what,
    "CPU µs": cost.toFixed(4),
    "of verifying it": (cost / least).toPrecision(2),
  }));
}

/** CPU time of this process for one call: the median of the rounds, after one that is not counted. */
export function cpuMicroseconds(rounds: number, times: number, work: () => unknown): number {
  const costs: number[] = [];
  for (let round = 0; round <= rounds; round++) {
    const before = process.cpuUsage();
    for (let n = 0; n < times; n++) work();
    costs.push(sinceMicroseconds(before) / times);
  }
  return median(costs.slice(1));
}

/** CPU time of this process since then. */
export function sinceMicroseconds(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before);
  return user + system;
}
