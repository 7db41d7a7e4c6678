import type { Clock } from "../platform/clock.ts";
import type { Log } from "../platform/log.ts";
import type { Random } from "../platform/random.ts";
import { seededRandom } from "../platform/random.ts";
import type { Dispatcher } from "./delivery/dispatcher.ts";
import { createDispatcher } from "./delivery/dispatcher.ts";
import { drawFlaws } from "./delivery/fault-plan.ts";
import type { Transport } from "./delivery/transport.ts";
import type { EventLog, EventRecord, EventSubject } from "./events.ts";
import { createEventLog } from "./events.ts";
import { createIds } from "./ids.ts";
import { runJob } from "./jobs/run-job.ts";
import type { ApiKey } from "./keys.ts";
import { knownKeys } from "./keys.ts";
import type { Mode } from "./mode.ts";
import { modes } from "./mode.ts";
import { nextUpdatedAt } from "./rules/stamps.ts";
import { seedCatalogue } from "./seeds.ts";
import type { Faults, Settings } from "./settings.ts";
import { defaultSettings, noFaults } from "./settings.ts";
import type { Space } from "./space.ts";
import { createSpace } from "./space.ts";
import type { Timeline } from "./timeline.ts";
import { createTimeline } from "./timeline.ts";

/** Everything the sandbox knows. A reset makes a new one. */
export interface State {
  readonly seed: string;
  readonly time: Timeline;
  readonly spaces: Readonly<Record<Mode, Space>>;
  readonly keys: Map<string, ApiKey>;
  readonly events: EventLog;
  readonly dispatcher: Dispatcher;
  settings: Settings;
  readonly faults: Faults;
  /** Sets the faults and starts their chance anew from their seed. */
  setFaults(faults: Faults): void;
  /** While true, changes within one millisecond may tie, as by the switch. */
  mayTie: boolean;
  /** An event of the given type to one endpoint, whatever it asked for. */
  sendTest(mode: Mode, endpointId: string, type: string): EventRecord;
  /** Resolves when nothing is due or under way; later retries do not count. */
  idle(): Promise<void>;
  close(): void;
}

export interface StateDeps {
  wallClock: Clock;
  log: Log;
  transport: Transport;
}

export function createState({ wallClock, log, transport }: StateDeps, seed: string): State {
  const deliveryIds = createIds(`${seed}/deliveries`);
  const events = createEventLog();
  let faults = noFaults();
  let faultRandom: Random = seededRandom(String(faults.seed));
  let flawRandom: Random = seededRandom(`${faults.seed}/flaws`);

  const time = createTimeline({
    wallClock,
    run(job) {
      try {
        if (job.kind === "delivery") dispatcher.retry(job.id);
        else runJob(spaces[job.mode], job.kind, job.id);
      } catch (error) {
        log.error({ err: error, job }, "a job of the sandbox failed");
      }
    },
  });
  const dispatcher = createDispatcher({
    wallClock,
    time,
    transport,
    endpoints: (mode) => spaces[mode].webhookEndpoints,
    settings: () => state.settings,
    faults: () => faults,
    faultRandom: () => faultRandom,
    newId: () => deliveryIds.uuid(),
  });

  function record(space: Space, type: string, subject: EventSubject, flaw: EventRecord["flaw"]) {
    const event: EventRecord = {
      id: space.ids.uuid(),
      type,
      created_at: time.iso(),
      mode: space.mode,
      subject,
      flaw,
    };
    events.append(event);
    return event;
  }

  function spaceOf(mode: Mode): Space {
    const space: Space = createSpace({
      mode,
      ids: createIds(`${seed}/${mode}`),
      time,
      settings: () => state.settings,
      touch: (previous) =>
        nextUpdatedAt(time.iso(), previous, state.mayTie || state.settings.same_millisecond_ties),
      emit(type, subject) {
        const { flaw, unknownType } = drawFlaws(flawRandom, faults);
        dispatcher.publish(record(space, type, subject, flaw));
        if (!unknownType) return;
        const family = type.slice(0, type.indexOf("."));
        dispatcher.publish(record(space, `${family}.unheard_of`, subject, null));
      },
      schedule: (kind, id, atMs) => time.schedule({ kind, mode, id, atMs }),
    });
    return space;
  }

  const spaces = { test: spaceOf("test"), live: spaceOf("live") };
  const state: State = {
    seed,
    time,
    spaces,
    keys: knownKeys(),
    events,
    dispatcher,
    settings: defaultSettings(),
    get faults() {
      return faults;
    },
    setFaults(next) {
      faults = next;
      faultRandom = seededRandom(String(next.seed));
      flawRandom = seededRandom(`${next.seed}/flaws`);
    },
    mayTie: false,
    sendTest(mode, endpointId, type) {
      const endpoint = spaces[mode].webhookEndpoints.get(endpointId);
      if (endpoint === undefined) throw new Error(`no webhook endpoint ${endpointId}`);
      const subject: EventSubject = { kind: "webhook_endpoint", record: endpoint };
      const event = record(spaces[mode], type, subject, null);
      dispatcher.publishTo(event, endpoint);
      return event;
    },
    async idle() {
      while (time.hasDue() || dispatcher.pending > 0) {
        // Due jobs run in the turn after they fell due, and what they cause is pending then.
        if (dispatcher.pending > 0) await dispatcher.quiet();
        else await new Promise(setImmediate);
      }
    },
    close() {
      time.close();
      dispatcher.close();
    },
  };
  for (const mode of modes) seedCatalogue(spaces[mode]);
  return state;
}
