import { PassThrough } from "node:stream";
import { stripVTControlCharacters } from "node:util";
import fc from "fast-check";
import { expect, test } from "vitest";
import { displayWidth } from "../../src/app/cli/display-width.ts";
import { createLiveScreen, lineText, linesInASecond } from "../../src/app/cli/live-screen.ts";

const at = new Date("2026-11-29T04:13:39.123Z");

function screen() {
  const out = Object.assign(new PassThrough(), { isTTY: true, columns: 80 }) as unknown as NodeJS.WriteStream;
  const live = createLiveScreen(out, { now: () => at });
  const lines = (): string[] => {
    live.close();
    const text = stripVTControlCharacters(String((out as unknown as PassThrough).read() ?? ""));
    return text.split("\n").filter((line) => line !== "");
  };
  return { live, lines };
}

const event = (seq: number) =>
  ({ seq, state: "applied", reason: null, resourceType: "order", resourceId: "8eeda9c3-d73e-4a5f-99a1" }) as const;

test("a burst of a thousand events prints a few lines and their sum", () => {
  const { live, lines } = screen();
  live.events(Array.from({ length: 1_000 }, (_, n) => event(n + 1)));
  const printed = lines();
  expect(printed).toHaveLength(linesInASecond + 1);
  expect(printed[0]).toBe("04:13:39Z  event   order 8eeda9c3…5f-99a1          #1 applied");
  expect(printed.at(-1)).toBe("04:13:39Z  event   990 more events in the last second");
});

test("a flood of one kind leaves room for the others", () => {
  const { live, lines } = screen();
  live.events(Array.from({ length: 1_000 }, (_, n) => event(n + 1)));
  live.write('{"level":"error","msg":"an event is dead","seq":7}\n');
  live.write('{"alert":{"title":"First payment declined","severity":"error","action":"trigger"}}\n');
  const printed = lines().join("\n");
  expect(printed).toContain("error   an event is dead: seq 7");
  expect(printed).toContain("alert   error  trigger  First payment declined");
});

test("fields of a log line that may hold people's data are not shown", () => {
  const { live, lines } = screen();
  live.write('{"level":"warn","msg":"it failed","email":"ada@example.com","name":"Ada","err":{"message":"no"}}\n');
  expect(lines()).toEqual(["04:13:39Z  warn    it failed: no"]);
});

test("no line is wider than the terminal, and none has a control character", () => {
  const text = fc.string({ unit: "binary", maxLength: 200 });
  fc.assert(
    fc.property(text, text, fc.integer({ min: 2, max: 200 }), (object, fate, width) => {
      const line = stripVTControlCharacters(lineText({ kind: "change", object, fate }, at, width));
      expect(displayWidth(line)).toBeLessThanOrEqual(width);
      expect(line).not.toMatch(/\p{Cc}/u);
    }),
  );
});
