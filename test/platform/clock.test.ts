import { expect, test } from "vitest";
import { createServiceClock } from "../../src/platform/clock.ts";

const at = (time: string) => new Date(`2026-03-01T${time}Z`);

/** A wall clock that the test sets. */
function makeClocks() {
  const wall = { time: at("12:00:00"), now: () => wall.time };
  return { wall, clock: createServiceClock(wall) };
}

test("before the first answer it is the wall clock", () => {
  const { clock } = makeClocks();
  expect(clock.now()).toEqual(at("12:00:00"));
});

test("it keeps the service's distance from the wall clock", () => {
  const { wall, clock } = makeClocks();
  clock.observe(at("15:00:00"));
  wall.time = at("12:00:30");
  expect(clock.now()).toEqual(at("15:00:30"));
});

test("it follows a clock that was moved, forwards and back", () => {
  const { clock } = makeClocks();
  clock.observe(at("20:00:00"));
  clock.observe(at("13:00:00"));
  expect(clock.now()).toEqual(at("13:00:00"));
});

test("an answer that comes after a newer one does not set it back", () => {
  const { clock } = makeClocks();
  clock.observe(at("12:00:10"));
  clock.observe(at("12:00:05"));
  expect(clock.now()).toEqual(at("12:00:10"));
});

test("a date that is none changes nothing", () => {
  const { clock } = makeClocks();
  clock.observe(new Date("nonsense"));
  expect(clock.now()).toEqual(at("12:00:00"));
});
