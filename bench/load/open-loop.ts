import { seededRandom } from "../../src/platform/random.ts";
import type { Connections } from "./connections.ts";
import type { OpenLoop } from "./protocol.ts";
import type { SignedRequest } from "./signed-request.ts";
import { type Tally, createTally } from "./tally.ts";

/** So many requests lie ready; more are made whenever there is nothing to send. */
const readyRequests = 200;

/** Sends when it is time to, not when the server is ready; ends when every answer is there. */
export function runOpenLoop(
  { free }: Connections,
  { seconds, perSecond, reportAcks }: OpenLoop,
  { seed, makeRequest }: { seed: string; makeRequest: () => SignedRequest },
): Promise<Tally> {
  const tally = createTally({ keepAcks: reportAcks });
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
        tally.answered({ status, dueMs: requestDueMs, sentMs, eventId: request.eventId });
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
      for (let made = 0; made < 4 && ready.length < readyRequests; made++)
        ready.push(makeRequest());
    };
    for (let made = 0; made < readyRequests; made++) ready.push(makeRequest());
    // The finest a timer has; what it is late is in `latenessMs`.
    const timer = setInterval(tick, 1);
  });
}
