/**
 * The load generator: a process that takes orders from its parent over IPC. It first makes and signs the requests of an
 * order, reports that it is ready, and sends them on command.
 */
import { once } from "node:events";
import { runClosedLoop } from "./closed-loop.ts";
import { openConnections } from "./connections.ts";
import { runOpenLoop } from "./open-loop.ts";
import type { FromGenerator, LoadOrder, LoadReport, ToGenerator } from "./protocol.ts";
import { signedRequest } from "./signed-request.ts";
import type { AcceptedEvents } from "./tally.ts";

const tell = (message: FromGenerator): void => void process.send?.(message);

async function told(): Promise<ToGenerator> {
  const [message] = (await once(process, "message")) as [ToGenerator];
  return message;
}

/** Keyed by the seed of the stream. */
const acceptedOf = new Map<string, AcceptedEvents>();

async function carryOut(order: LoadOrder): Promise<LoadReport> {
  const { port, connections: count, stream, firstEvent, plan } = order;
  const { seed } = stream;
  let nextEvent = firstEvent;
  const makeRequest = () => signedRequest(stream, nextEvent++);
  const acceptedEvents = acceptedOf.get(seed) ?? new Set();
  acceptedOf.set(seed, acceptedEvents);
  const requests = plan.kind === "closed" ? Array.from({ length: plan.maxEvents }, makeRequest) : [];
  const connections = await openConnections(port, count);
  try {
    tell("ready");
    await told();
    const [cpuBefore, beforeMs] = [process.cpuUsage(), performance.now()];
    const tally = await Promise.race([
      connections.lost,
      plan.kind === "closed"
        ? runClosedLoop(connections, plan, { requests, acceptedEvents })
        : runOpenLoop(connections, plan, { seed, makeRequest, acceptedEvents }),
    ]);
    const { user, system } = process.cpuUsage(cpuBefore);
    const cpu = (user + system) / 1_000 / (performance.now() - beforeMs);
    const report = tally.report();
    const sent = Object.values(report.refused).reduce((sum, n) => sum + n, report.accepted);
    return { ...report, nextEvent: firstEvent + sent, cpu };
  } finally {
    connections.close();
  }
}

for (let message = await told(); message !== "end"; message = await told()) {
  if (message === "go") continue;
  try {
    tell({ report: await carryOut(message.order) });
  } catch (error) {
    tell({ failure: error instanceof Error ? (error.stack ?? error.message) : String(error) });
  }
}
process.disconnect();
