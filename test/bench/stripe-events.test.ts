import { expect, test } from "vitest";
import type { EventStream } from "../../bench/load/protocol.ts";
import { stripeEvent, stripeRow } from "../../bench/load/stripe-events.ts";

const stream: EventStream = { mix: "stripe", seed: "a seed", sinceMs: Date.UTC(2026, 0, 1) };
const first = 8_000;

interface Envelope {
  created: number;
  data: { object: { id: string; status?: string } };
}

const read = (n: number): Envelope => JSON.parse(stripeEvent(stream, n).body.toString()) as Envelope;

test("the row that is expected of the peer is that of the event's object", () => {
  for (let n = first; n < first + 8; n++) {
    const { id, status } = read(n).data.object;
    expect(stripeRow(stream, n)).toMatchObject({ id, status: status ?? null });
  }
});

test("a payment is completed seconds after it was opened, so that the peer believes the later state", () => {
  for (const n of [first + 1, first + 3, first + 5]) {
    const { created, data } = read(n);
    const opened = read(n - 2_401);
    expect(opened.data.object.id).toBe(data.object.id);
    expect(opened.data.object.status).not.toBe(data.object.status);
    expect(created - opened.created).toBeGreaterThanOrEqual(2);
  }
});
