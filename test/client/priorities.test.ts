import { describe, expect, it } from "vitest";
import { type CallPriority, createCallGate, createPace } from "../../src/core/client/pace.ts";
import { createTestTime } from "./test-time.ts";

const never = new AbortController().signal;

function setUp(places: number) {
  const time = createTestTime();
  const pace = createPace();
  const closing = new AbortController();
  const gate = createCallGate({ clock: time.clock, pace, sleep: time.sleep, closing: closing.signal }, places);
  const admitted: string[] = [];
  const enter = async (name: string, priority: CallPriority, signal = never): Promise<() => void> => {
    const leave = await gate.acquire(priority, signal);
    admitted.push(name);
    return leave;
  };
  return { time, pace, gate, enter, admitted };
}

async function settle(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}

describe("the lanes", () => {
  it("let as many in as there are places", async () => {
    const { enter, admitted } = setUp(2);
    const leave = await enter("a", "walk");
    await enter("b", "walk");
    const third = enter("c", "walk");
    await settle();
    expect(admitted).toEqual(["a", "b"]);
    leave();
    await third;
    expect(admitted).toEqual(["a", "b", "c"]);
  });

  it("let fetches in before walks that waited longer, each lane in its order", async () => {
    const { enter, admitted } = setUp(1);
    let leave = await enter("first", "walk");
    const rest = [
      enter("walk 1", "walk"),
      enter("walk 2", "walk"),
      enter("fetch 1", "fetch"),
      enter("fetch 2", "fetch"),
    ];
    for (const next of [rest[2], rest[3], rest[0], rest[1]]) {
      leave();
      leave = (await next) ?? leave;
    }
    expect(admitted).toEqual(["first", "fetch 1", "fetch 2", "walk 1", "walk 2"]);
  });

  it("count a place given back twice once", async () => {
    const { enter, admitted } = setUp(1);
    const leave = await enter("a", "fetch");
    leave();
    leave();
    await enter("b", "fetch");
    void enter("c", "fetch");
    await settle();
    expect(admitted).toEqual(["a", "b"]);
  });

  it("forget who gives up waiting", async () => {
    const { enter, admitted } = setUp(1);
    const leave = await enter("a", "fetch");
    const abort = new AbortController();
    const impatient = enter("b", "fetch", abort.signal);
    const patient = enter("c", "fetch");
    abort.abort(new Error("no time"));
    await expect(impatient).rejects.toThrow("no time");
    leave();
    await patient;
    expect(admitted).toEqual(["a", "c"]);
  });

  it("refuse who had given up before", async () => {
    const { enter } = setUp(1);
    await expect(enter("a", "fetch", AbortSignal.abort(new Error("gone")))).rejects.toThrow("gone");
  });

  it("keep to the pace, also with free places", async () => {
    const { enter, pace, time } = setUp(3);
    await enter("a", "fetch");
    pace.slowDown(time.clock.now().getTime(), 4_000);
    await enter("b", "walk");
    expect(time.elapsedMs()).toBe(4_000);
    expect(time.sleeps).toEqual([4_000]);
  });

  it("let a fetch overtake a walk that the pace holds up", async () => {
    const { enter, pace, time, admitted } = setUp(3);
    pace.slowDown(time.clock.now().getTime(), 4_000);
    await Promise.all([enter("walk", "walk"), enter("fetch", "fetch")]);
    expect(admitted).toEqual(["fetch", "walk"]);
  });
});
