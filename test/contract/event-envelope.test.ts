import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { defaultEnvelopePaths, eventEnvelopeSchema, readEventParts } from "../../src/core/contract/event-envelope.ts";

const nothing = { id: null, type: null, createdAt: null, apiVersion: null, object: null };

describe("readEventParts", () => {
  it("reads the assumed envelope", () => {
    const body = {
      id: "evt_1",
      type: "order.created",
      created_at: "2026-01-02T03:04:05.6Z",
      api_version: "2026-01-01",
      data: { object: { id: "o1" } },
    };
    expect(eventEnvelopeSchema.safeParse(body).success).toBe(true);
    expect(readEventParts(defaultEnvelopePaths, body)).toEqual({
      id: "evt_1",
      type: "order.created",
      createdAt: "2026-01-02T03:04:05.600000Z",
      apiVersion: "2026-01-01",
      object: { id: "o1" },
    });
  });

  it("reads the places that are set instead", () => {
    const places = {
      id: "meta.event.id",
      type: "event_type",
      createdAt: "meta.at",
      apiVersion: "v",
      object: "payload",
    };
    const body = {
      meta: { event: { id: "e" }, at: "2026-01-01T00:00:00Z" },
      event_type: "x",
      v: "1",
      payload: { id: "o" },
    };
    expect(readEventParts(places, body)).toMatchObject({ id: "e", type: "x", object: { id: "o" } });
  });

  it.each([
    ["a number as id", { id: 7 }],
    ["a null object", { data: { object: null } }],
    ["a list as object", { data: { object: [] } }],
    ["null data", { data: null }],
    ["a time that is none", { created_at: "soon" }],
    ["a list as body", []],
    ["null", null],
    ["text", "text"],
    ["nothing", undefined],
  ])("reads null from %s", (_case, body) => {
    expect(readEventParts(defaultEnvelopePaths, body)).toEqual(nothing);
  });

  it("does not look into prototypes", () => {
    const places = { ...defaultEnvelopePaths, object: "constructor.prototype", type: "toString" };
    expect(readEventParts(places, {})).toEqual(nothing);
    const forged: unknown = JSON.parse('{"__proto__":{"id":"evt_1","data":{"object":{"id":"o"}}}}');
    expect(readEventParts(defaultEnvelopePaths, forged)).toEqual(nothing);
  });

  it("never throws", () => {
    fc.assert(
      fc.property(fc.anything(), fc.string(), (body, place) => {
        readEventParts({ ...defaultEnvelopePaths, object: place }, body);
      }),
    );
  });
});
