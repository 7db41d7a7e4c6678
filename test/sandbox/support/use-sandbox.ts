import { afterAll, beforeAll } from "vitest";
import { type TestSandbox, startTestSandbox } from "../harness.ts";

/** A sandbox for the tests of a file: started before the first, closed after the last. */
export function useSandbox(): TestSandbox {
  let running: TestSandbox | undefined;
  const started = (): TestSandbox => {
    if (running === undefined) throw new Error("The sandbox is not there before the first test.");
    return running;
  };
  beforeAll(async () => {
    running = await startTestSandbox();
  });
  afterAll(() => running?.close());
  return {
    get url() {
      return started().url;
    },
    call: (...request) => started().call(...request),
    ok: (...request) => started().ok(...request),
    tryControl: (...request) => started().tryControl(...request),
    control: (...request) => started().control(...request),
    close: () => started().close(),
  };
}
