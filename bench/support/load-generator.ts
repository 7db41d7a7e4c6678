import { compiled } from "./compile.ts";
import type { CpuSet } from "./pinning.ts";
import { type BenchProcess, nextMessage, startProcess } from "./processes.ts";
import type { EventStream, FromGenerator, LoadOrder, LoadReport, Mix, ToGenerator } from "../load/protocol.ts";

/** A stream and how much of it was sent. A comparison of stored and answered events needs one for each database. */
export interface SentStream {
  readonly stream: EventStream;
  nextEvent: number;
  /** Deliveries answered 200. */
  accepted: number;
  /** Different events among them. */
  distinct: number;
}

let streams = 0;

/** A new stream, an hour old, so that its times are all past. Its seed is new in this run: no event is of two streams. */
export function newStream(mix: Mix): SentStream {
  const seed = `bench-${Date.now()}-${++streams}`;
  const stream = { mix, seed, sinceMs: Date.now() - 3_600_000 };
  return { stream, nextEvent: 0, accepted: 0, distinct: 0 };
}

export interface LoadGenerator {
  readonly process: BenchProcess;
  /** Used where an order names no other. */
  readonly sent: SentStream;
  /** Prepares and sends one load; `onStart` is called in between. Throws if an event was refused. */
  run(
    order: Omit<LoadOrder, "stream" | "firstEvent" | "connections"> & { of?: SentStream },
    onStart?: () => void,
  ): Promise<LoadReport>;
  stop(): Promise<void>;
}

/** Each delivery of a stream is sent once, for any number of orders. */
export function startLoadGenerator(
  { connections = 64, ...place }: { directory: string; cpus: CpuSet; connections?: number },
  sent: SentStream = newStream("plain"),
): LoadGenerator {
  const generator = startProcess({
    ...place,
    name: "generator",
    file: compiled(new URL("../load/generator.ts", import.meta.url)),
    ipc: true,
  });
  const tell = (message: ToGenerator) => void generator.child.send(message);
  const hear = async () => {
    const message = await nextMessage<FromGenerator>(generator);
    if (message !== "ready" && "failure" in message) throw new Error(message.failure);
    return message;
  };
  return {
    process: generator,
    sent,
    async run({ of = sent, ...order }, onStart) {
      const { stream, nextEvent: firstEvent } = of;
      tell({ order: { ...order, connections, stream, firstEvent } });
      await hear();
      onStart?.();
      tell("go");
      const message = await hear();
      if (message === "ready") throw new Error("the generator spoke out of turn");
      const { report } = message;
      of.nextEvent = report.nextEvent;
      of.accepted += report.accepted;
      of.distinct += report.distinct;
      if (Object.keys(report.refused).length > 0) {
        throw new Error(`the server refused events: ${JSON.stringify(report.refused)}`);
      }
      return report;
    },
    stop: () => generator.stop(),
  };
}
