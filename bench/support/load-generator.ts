import { compiled } from "./compile.ts";
import type { CpuSet } from "./pinning.ts";
import { type BenchProcess, nextMessage, startProcess } from "./processes.ts";
import type { FromGenerator, LoadOrder, LoadReport, ToGenerator } from "../load/protocol.ts";

export interface LoadGenerator {
  readonly process: BenchProcess;
  /** Prepares and sends one load; `onStart` is called in between. Throws if an event was refused. */
  run(
    order: Omit<LoadOrder, "seed" | "firstEvent" | "connections">,
    onStart?: () => void,
  ): Promise<LoadReport>;
  stop(): Promise<void>;
}

/** A generator that never repeats an event, of its own or of another. */
export function startLoadGenerator({
  connections = 64,
  ...place
}: {
  directory: string;
  cpus: CpuSet;
  connections?: number;
}): LoadGenerator {
  const generator = startProcess({
    ...place,
    name: "generator",
    file: compiled(new URL("../load/generator.ts", import.meta.url)),
    ipc: true,
  });
  const seed = `bench-${Date.now()}-${generator.pid}`;
  let firstEvent = 0;
  const tell = (message: ToGenerator) => void generator.child.send(message);
  const hear = async () => {
    const message = await nextMessage<FromGenerator>(generator);
    if (message !== "ready" && "failure" in message) throw new Error(message.failure);
    return message;
  };
  return {
    process: generator,
    async run(order, onStart) {
      tell({ order: { ...order, connections, seed, firstEvent } });
      await hear();
      onStart?.();
      tell("go");
      const message = await hear();
      if (message === "ready") throw new Error("the generator spoke out of turn");
      const { report } = message;
      firstEvent = report.nextEvent;
      if (Object.keys(report.refused).length > 0) {
        throw new Error(`the server refused events: ${JSON.stringify(report.refused)}`);
      }
      return report;
    },
    stop: () => generator.stop(),
  };
}
