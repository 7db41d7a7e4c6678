import type { EventStream, SampleEvent } from "./protocol.ts";
import { realEvent } from "./real-events.ts";
import { hotEvent, sampleEvent } from "./sample-events.ts";
import { stripeEvent } from "./stripe-events.ts";

/** The delivery number `n` of a stream. */
export function eventOf(stream: EventStream, n: number): SampleEvent {
  switch (stream.mix) {
    case "plain":
      return sampleEvent(stream.seed, n);
    case "real":
      return realEvent(stream, n);
    case "stripe":
      return stripeEvent(stream, n);
    case "hot":
      return hotEvent(stream.seed, n);
  }
}
