import { signatureScheme } from "../../src/core/contract/signature/signature-scheme.ts";
import { eventOf } from "./event-of.ts";
import type { EventStream, SampleEvent } from "./protocol.ts";
import { stripeSignature } from "./stripe-events.ts";

/** Shared by the generator and every server that it sends to. */
export const benchSecret = "whsec_for_benchmarks_only_0123456789";

export interface SignedRequest {
  eventId: string;
  /** The event's number: a repeat has that of the first delivery. */
  number: number;
  /** The whole HTTP/1.1 request as sent. */
  bytes: Buffer;
}

const scheme = signatureScheme("svc");

/** The delivery number `n` of a stream, signed now. */
export const signedRequest = (stream: EventStream, n: number): SignedRequest =>
  signed(eventOf(stream, n), stream.mix === "stripe" ? stripeSignature : ourSignature);

type Sign = (secret: string, body: Buffer, at: Date, id: string) => Readonly<Record<string, string>>;

const ourSignature: Sign = (secret, body, at, messageId) => scheme.sign({ body, secrets: [secret], at, messageId });

/** A delivery of an event, signed now. */
export function signed({ id, number, body }: SampleEvent, sign: Sign = ourSignature): SignedRequest {
  const signature = sign(benchSecret, body, new Date(), id);
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
