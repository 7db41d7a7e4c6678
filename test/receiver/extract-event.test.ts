import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { extractEvent } from "../../src/core/receiver/webhook.ts";
import { defaultEnvelopePaths } from "../../src/core/contract/event-envelope.ts";

const extract = (body: string | Buffer) => extractEvent(defaultEnvelopePaths, Buffer.from(body as string));
const idOf = (id: unknown) => extract(JSON.stringify({ id })).eventId;
const sha256 = (bytes: string | Buffer) => `sha256:${createHash("sha256").update(bytes).digest("hex")}`;

describe("what is taken out of an authentic event", () => {
  test("id, type, version and time of a usual one", () => {
    const body = {
      id: "evt_1",
      type: "order.created",
      created_at: "2026-03-01T11:00:00.5+01:00",
      api_version: "2026-01-01",
      data: { object: {} },
    };
    expect(extract(JSON.stringify(body))).toEqual({
      eventId: "evt_1",
      type: "order.created",
      apiVersion: "2026-01-01",
      createdAt: "2026-03-01T10:00:00.500000Z",
    });
  });

  test("a byte order mark is skipped", () => {
    expect(extract('\ufeff{"id":"evt_1"}').eventId).toBe("evt_1");
  });

  test("the places are a setting", () => {
    const places = { ...defaultEnvelopePaths, id: "meta.uid", type: "meta.kind" };
    const raw = Buffer.from('{"meta":{"uid":"u-1","kind":"k"},"id":"other"}');
    expect(extractEvent(places, raw)).toMatchObject({ eventId: "u-1", type: "k" });
  });

  test("an id of 255 characters is kept, a longer one becomes the hash of its UTF-8", () => {
    expect(idOf("é".repeat(255))).toBe("é".repeat(255));
    expect(idOf("é".repeat(256))).toBe(sha256("é".repeat(256)));
    expect(idOf("x".repeat(10_000))).toBe(sha256("x".repeat(10_000)));
  });

  test("an id with NUL or a lone surrogate becomes a hash too", () => {
    expect(idOf("evt\0")).toBe(sha256("evt\0"));
    expect(extract('{"id":"evt\\ud800"}').eventId).toBe(sha256("evt\ufffd"));
  });

  test.each([
    ["broken JSON", '{"id":"evt_1"'],
    ["no body", ""],
    ["bytes that are not UTF-8", Buffer.from([0x7b, 0x22, 0x69, 0x64, 0x22, 0xff])],
    ["no id", '{"type":"order.created"}'],
    ["an empty id", '{"id":""}'],
    ["an id that is a number", '{"id":17}'],
    ["an id that is null", '{"id":null}'],
    ["an id that is an object", '{"id":{"id":"evt_1"}}'],
    ["an array", '[{"id":"evt_1"}]'],
    ["null", "null"],
    ["an id that is inherited", '{"__proto__":{"id":"evt_1"}}'],
  ])("%s gives the hash of the body", (_, body) => {
    expect(extract(body).eventId).toBe(sha256(body));
  });

  test("type and version that no column should hold are null", () => {
    for (const bad of ["", "x".repeat(256), "a\0b", "\ud800", 1, null, [], {}]) {
      const found = extract(JSON.stringify({ id: "evt_1", type: bad, api_version: bad }));
      expect(found).toEqual({ eventId: "evt_1", type: null, apiVersion: null, createdAt: null });
    }
  });

  test("a time that is none is null", () => {
    for (const bad of ["yesterday", "2026-02-30T00:00:00Z", "2026-01-01", 1_767_225_600, null]) {
      expect(extract(JSON.stringify({ id: "e", created_at: bad })).createdAt).toBeNull();
    }
  });

  test("never throws, always gives an id that a column takes, and the same one for the same bytes", () => {
    const json = fc.json().map((text) => Buffer.from(text));
    const envelope = fc
      .record({
        id: fc.anything(),
        type: fc.anything(),
        created_at: fc.anything(),
        api_version: fc.anything(),
      })
      .map((body) => Buffer.from(safeJson(body)));
    const bytes = fc.uint8Array({ maxLength: 200 }).map((data) => Buffer.from(data));
    const cut = fc.tuple(envelope, fc.nat(), fc.nat(255)).map(([body, at, byte]) => damaged(body, at, byte));
    fc.assert(
      fc.property(fc.oneof(json, envelope, bytes, cut), (raw) => {
        const found = extractEvent(defaultEnvelopePaths, raw);
        for (const text of [found.eventId, found.type, found.apiVersion]) {
          if (text === null) continue;
          expect(text.length).toBeGreaterThan(0);
          expect(text.length).toBeLessThanOrEqual(255);
          expect(text.isWellFormed() && !text.includes("\0")).toBe(true);
        }
        expect(found.createdAt ?? "0001-01-01T00:00:00.000000Z").toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
        expect(extractEvent(defaultEnvelopePaths, Buffer.from(raw))).toEqual(found);
      }),
      { numRuns: 2_000 },
    );
  });

  test("nesting as deep as a body can hold does no harm", () => {
    const depth = 500_000;
    const body = `{"id":"evt_1","data":${"[".repeat(depth)}${"]".repeat(depth)}}`;
    expect(extract(body).eventId).toMatch(/^(evt_1|sha256:[0-9a-f]{64})$/);
  });
});

/** Numbers that JSON has not, and values it leaves out, are all the same here. */
function safeJson(value: unknown): string {
  try {
    return JSON.stringify(value) ?? "null";
  } catch {
    return "null";
  }
}

function damaged(body: Buffer, at: number, byte: number): Buffer {
  const copy = Buffer.from(body);
  if (copy.length > 0) copy[at % copy.length] = byte;
  return copy;
}
