import { signatureScheme } from "../../src/contract/signature/signature-scheme.ts";
import { eventOf } from "./event-of.ts";
import type { EventStream } from "./protocol.ts";
import { stripeSignature } from "./stripe-events.ts";

/** Shared by the generator and every server that it sends to. */
export const benchSecret = "whsec_for_benchmarks_only_0123456789";

export interface SignedRequest {
  eventId: string;
  /** Of the event: a repeat has that of the first delivery. */
  number: number;
  /** The whole HTTP/1.1 request as sent. */
  bytes: Buffer;
}

const scheme = signatureScheme("svc");

/** The delivery number `n` of a stream, signed now. */
export function signedRequest(stream: EventStream, n: number): SignedRequest {
  const { id, number, body } = eventOf(stream, n);
  const at = new Date();
  const signature =
    stream.mix === "stripe"
      ? stripeSignature(benchSecret, body, at)
      : scheme.sign({ body, secrets: [benchSecret], at, messageId: id });
  const head = [
    "POST /webhooks HTTP/1.1",
    "Host: 127.0.0.1",
    "User-Agent: svc-webhooks/1.0",
    "Content-Type: application/json",
    `Content-Length: ${body.length}`,
    ...Object.entries(signature).map(([name, value]) => `${name}: ${value}`),
    "\r\n",
  ].join("\r\n");
  return { eventId: id, number, bytes: Buffer.concat([Buffer.from(head, "latin1"), body]) };
}
