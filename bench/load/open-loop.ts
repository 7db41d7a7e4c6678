import { seededRandom } from "../../src/platform/random.ts";
import type { Connections } from "./connections.ts";
import type { OpenLoop } from "./protocol.ts";
import type { SignedRequest } from "./signed-request.ts";
import { type AcceptedEvents, type Tally, createTally } from "./tally.ts";

/** Number of requests prepared in advance. More are prepared whenever none is due. */
const readyRequests = 200;

/** Sends on schedule, whether or not the server keeps up. Resolves when every answer has arrived. */
export function runOpenLoop(
  { free }: Connections,
  { seconds, perSecond, reportAcks }: OpenLoop,
  {
    seed,
    makeRequest,
    acceptedEvents,
  }: { seed: string; makeRequest: () => SignedRequest; acceptedEvents: AcceptedEvents },
): Promise<Tally> {
  const tally = createTally(acceptedEvents, { keepAcks: reportAcks });
  const random = seededRandom(`${seed}:arrivals`);
  const waitMs = () => (-Math.log(1 - random()) * 1_000) / perSecond;
  const ready: SignedRequest[] = [];
  const overdue: number[] = [];
  let inFlight = 0;

  const startMs = performance.now();
  const endMs = startMs + seconds * 1_000;
  let dueMs = startMs + waitMs();

  return new Promise((resolve) => {
    const sendOverdue = () => {
      while (overdue.length > 0 && free.length > 0) send(overdue.shift() ?? 0);
    };
    const send = (requestDueMs: number) => {
      const connection = free.shift();
      if (connection === undefined) return;
      const request = ready.shift() ?? makeRequest();
      const sentMs = performance.now();
      inFlight++;
      connection.send(request.bytes, (status) => {
        inFlight--;
        free.push(connection);
        tally.answered({ status, dueMs: requestDueMs, sentMs, request });
        sendOverdue();
      });
    };
    const tick = () => {
      for (const nowMs = performance.now(); dueMs <= nowMs && dueMs < endMs; dueMs += waitMs()) {
        overdue.push(dueMs);
      }
      sendOverdue();
      if (dueMs >= endMs && overdue.length === 0 && inFlight === 0) {
        clearInterval(timer);
        resolve(tally);
        return;
      }
      for (let made = 0; made < 4 && ready.length < readyRequests; made++) ready.push(makeRequest());
    };
    for (let made = 0; made < readyRequests; made++) ready.push(makeRequest());
    // The finest resolution of a timer. Its lateness is in `latenessMs`.
    const timer = setInterval(tick, 1);
  });
}
