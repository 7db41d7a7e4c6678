import { describe, expect, test } from "vitest";
import type { EventStream } from "../../bench/load/protocol.ts";
import { currentObject, realEvent } from "../../bench/load/real-events.ts";

const stream: EventStream = { mix: "real", seed: "a seed", sinceMs: Date.UTC(2026, 0, 1) };

interface Envelope {
  type: string;
  data: { object: Record<string, unknown> & { id: string; updated_at: string } };
}

const read = (n: number): Envelope => JSON.parse(realEvent(stream, n).body.toString()) as Envelope;

/** What the last `count` of the first `all` deliveries bring, after those before them. */
function countDeliveries(all: number, count: number) {
  const newest = new Map<string, string>();
  const seen = new Set<number>();
  const counts = {
    repeats: 0,
    older: 0,
    declines: 0,
    ties: 0,
    thin: 0,
    refunds: 0,
    chargebacks: 0,
  };
  for (let n = 0; n < all; n++) {
    const isCounted = n >= all - count;
    const count1 = (key: keyof typeof counts) => void (isCounted && counts[key]++);
    const { number } = realEvent(stream, n);
    if (seen.has(number)) {
      count1("repeats");
      continue;
    }
    seen.add(number);
    const { type, data } = read(n);
    const { id, updated_at: updatedAt, ...fields } = data.object;
    const before = newest.get(id) ?? "";
    if (updatedAt < before) count1("older");
    else newest.set(id, updatedAt);
    if (updatedAt === before) count1("ties");
    if (type === "order.failed") count1("declines");
    if (type === "order.refunded") count1("refunds");
    if (type === "order.chargeback") count1("chargebacks");
    if (type.startsWith("order") && !Object.hasOwn(fields, "total")) count1("thin");
  }
  return counts;
}

describe("the realistic mix", () => {
  test("has its shares of what goes wrong once its stories overlap", () => {
    expect(countDeliveries(5_000, 200)).toEqual({
      repeats: 20,
      older: 40,
      declines: 16,
      ties: 4,
      thin: 4,
      refunds: 10,
      chargebacks: 4,
    });
  });

  test("repeats the bytes of an earlier delivery", () => {
    for (let n = 9; n < 500; n += 10) {
      const { number, id, body } = realEvent(stream, n);
      expect(number).toBeLessThan(n);
      expect(realEvent(stream, number)).toEqual({ number, id, body });
    }
  });

  test("carries the dunning fields with a decline of a subscription that renewed before", () => {
    const renewed = new Set<unknown>();
    const declines = Array.from({ length: 3_000 }, (_, n) => n).flatMap((n) => {
      const { type, data } = read(n);
      if (type === "subscription.charged") renewed.add(data.object.id);
      // A repeat may be one of a story that is older than the stream.
      return type === "order.failed" && realEvent(stream, n).number === n ? [data.object] : [];
    });
    for (const decline of declines.slice(-20)) {
      expect(decline["attempt_count"]).toBeGreaterThan(0);
      expect(String(decline["next_retry_at"]) > decline.updated_at).toBe(true);
      expect(renewed).toContain(decline["subscription_id"]);
    }
  });

  test("has a service that shows each object whole, in its last state, without dunning fields", () => {
    for (let n = 0; n < 500; n++) {
      const { type, data } = read(n);
      const { id, updated_at: updatedAt } = data.object;
      const path = `${type.split(".")[0]}s`;
      const shown = currentObject(stream, path, id);
      expect(shown?.["id"]).toBe(id);
      expect(String(shown?.["updated_at"]) >= updatedAt).toBe(true);
      expect(shown).not.toHaveProperty("next_retry_at");
      if (path === "orders") expect(shown).toHaveProperty("total", 4_750);
    }
  });

  test("has a service that knows no object of another stream", () => {
    const { id } = read(3).data.object;
    expect(currentObject({ ...stream, seed: "another" }, "orders", id)).toBeUndefined();
    expect(currentObject(stream, "orders", "unknown")).toBeUndefined();
  });
});
