import { type AcceptedEvents, type Tally, createTally } from "./tally.ts";
import type { Connections } from "./connections.ts";
import type { ClosedLoop } from "./protocol.ts";
import type { SignedRequest } from "./signed-request.ts";

/** Sends as fast as the answers come. Resolves when the time is over and every answer has arrived. */
export function runClosedLoop(
  { free }: Connections,
  { seconds }: ClosedLoop,
  { requests, acceptedEvents }: { requests: readonly SignedRequest[]; acceptedEvents: AcceptedEvents },
): Promise<Tally> {
  const tally = createTally(acceptedEvents);
  const endMs = performance.now() + seconds * 1_000;
  let next = 0;
  let inFlight = 0;
  return new Promise((resolve) => {
    const sendNext = (connection: (typeof free)[number]) => {
      const nowMs = performance.now();
      const request = nowMs < endMs ? requests[next] : undefined;
      if (request === undefined) {
        if (inFlight === 0) resolve(tally);
        return;
      }
      next++;
      inFlight++;
      connection.send(request.bytes, (status) => {
        inFlight--;
        tally.answered({ status, dueMs: nowMs, sentMs: nowMs, request });
        sendNext(connection);
      });
    };
    for (const connection of free.splice(0)) sendNext(connection);
  });
}
