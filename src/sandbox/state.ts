import type { Clock } from "../platform/clock.ts";
import type { Log } from "../platform/log.ts";
import type { SeededRandom } from "../platform/random.ts";
import { seededRandom } from "../platform/random.ts";
import type { Dispatcher } from "./delivery/dispatcher.ts";
import { createDispatcher } from "./delivery/dispatcher.ts";
import { drawFlaws } from "./delivery/fault-plan.ts";
import type { Transport } from "./delivery/transport.ts";
import type { EventLog, EventRecord, EventSubject } from "./events.ts";
import { createEventLog } from "./events.ts";
import type { Ids } from "./ids.ts";
import { createIds } from "./ids.ts";
import { runJob } from "./jobs/run-job.ts";
import type { ApiKey } from "./keys.ts";
import { firstMerchant, knownKeys } from "./keys.ts";
import type { Mode } from "./mode.ts";
import { modes } from "./mode.ts";
import { nextUpdatedAt } from "./rules/stamps.ts";
import { seedCatalogue } from "./seeds.ts";
import type { Faults } from "./faults.ts";
import { noFaults } from "./faults.ts";
import type { Settings } from "./settings.ts";
import { defaultSettings } from "./settings.ts";
import type { Space } from "./space.ts";
import { createSpace } from "./space.ts";
import type { RateWindows } from "./store/rate-windows.ts";
import { createRateWindows } from "./store/rate-windows.ts";
import type { Timeline } from "./timeline.ts";
import { createTimeline } from "./timeline.ts";

export interface Merchant {
  readonly id: string;
  readonly name: string;
  readonly spaces: Readonly<Record<Mode, Space>>;
}

/** Streams of their own, so that the timing of deliveries cannot change an id or a fault of a request. */
interface Chance {
  readonly deliveryIds: Ids;
  faults: SeededRandom;
  flaws: SeededRandom;
  api: SeededRandom;
}

/** Everything the sandbox knows. A reset makes a new one. */
export interface State {
  readonly seed: string;
  readonly time: Timeline;
  /** By id. Nothing of one merchant is seen by another. */
  readonly merchants: Map<string, Merchant>;
  /** Those of the merchant that is there from the start. */
  readonly spaces: Merchant["spaces"];
  /** A further merchant with an empty catalogue. */
  addMerchant(id: string, name: string): Merchant;
  readonly keys: Map<string, ApiKey>;
  readonly events: EventLog;
  readonly dispatcher: Dispatcher;
  readonly rateWindows: RateWindows;
  settings: Settings;
  readonly faults: Faults;
  /** Sets the faults and starts their chance anew from their seed. */
  setFaults(faults: Faults): void;
  /** What faults and delivery ids are drawn from. */
  readonly chance: Chance;
  /** While true, changes within one millisecond may tie, as by the switch. */
  mayTie: boolean;
  /** An event of the given type to one endpoint, whatever it asked for. */
  sendTest(space: Space, endpointId: string, type: string): EventRecord;
  /** Called for each request that may change something. */
  noteRequest(): void;
  /** Differs whenever something may have changed. */
  revision(): string;
  /** Resolves when nothing is due or under way; later retries do not count. */
  idle(): Promise<void>;
  close(): void;
}

export interface StateDeps {
  wallClock: Clock;
  log: Log;
  transport: Transport;
  /** Where the sandbox can be reached, such as `http://127.0.0.1:4010`. */
  origin: () => string;
}

export function createState({ wallClock, log, transport, origin }: StateDeps, seed: string): State {
  const events = createEventLog();
  let faults = noFaults();
  const chance: Chance = {
    deliveryIds: createIds(`${seed}/deliveries`),
    ...faultStreams(faults),
  };
  const merchants = new Map<string, Merchant>();

  let requests = 0;
  let jobsRun = 0;
  const time = createTimeline({
    wallClock,
    run(job) {
      jobsRun += 1;
      try {
        if (job.kind === "delivery") dispatcher.retry(job.id);
        else runJob(spaceAt(job), job.kind, job.id);
      } catch (error) {
        log.error({ err: error, job }, "a job of the sandbox failed");
      }
    },
  });
  const dispatcher = createDispatcher({
    wallClock,
    time,
    transport,
    endpoints: (owner) => spaceAt(owner).webhookEndpoints,
    settings: () => state.settings,
    faults: () => faults,
    faultRandom: () => chance.faults,
    newId: () => chance.deliveryIds.uuid(),
  });

  function record(space: Space, type: string, subject: EventSubject, flaw: EventRecord["flaw"]) {
    const event: EventRecord = {
      id: space.ids.uuid(),
      type,
      created_at: time.iso(),
      merchant: space.merchant,
      mode: space.mode,
      subject: slimmed(subject),
      flaw,
    };
    events.append(event);
    return event;
  }

  function spaceAt({ merchant, mode }: { merchant: string; mode: Mode }): Space {
    const owner = merchants.get(merchant);
    if (owner === undefined) throw new Error(`no merchant ${merchant}`);
    return owner.spaces[mode];
  }

  function spaceOf(merchant: string, mode: Mode): Space {
    const space: Space = createSpace({
      merchant,
      mode,
      // The first merchant's ids are those of a sandbox that has no other.
      ids: createIds(
        merchant === firstMerchant ? `${seed}/${mode}` : `${seed}/${merchant}/${mode}`,
      ),
      time,
      settings: () => state.settings,
      touch: (previous) =>
        nextUpdatedAt(time.iso(), previous, state.mayTie || state.settings.same_millisecond_ties),
      emit(type, subject) {
        const { flaw, unknownType } = drawFlaws(chance.flaws, faults);
        dispatcher.publish(record(space, type, subject, flaw));
        if (!unknownType) return;
        const family = type.slice(0, type.indexOf("."));
        dispatcher.publish(record(space, `${family}.unheard_of`, subject, null));
      },
      assetUrl: (path) => `${origin()}${path}`,
      schedule: (kind, id, atMs) => time.schedule({ kind, merchant, mode, id, atMs }),
    });
    return space;
  }

  function addMerchant(id: string, name: string): Merchant {
    const spaces = { test: spaceOf(id, "test"), live: spaceOf(id, "live") };
    const merchant = { id, name, spaces };
    merchants.set(id, merchant);
    return merchant;
  }

  const { spaces } = addMerchant(firstMerchant, "The sandbox's merchant");
  const state: State = {
    seed,
    time,
    merchants,
    spaces,
    addMerchant,
    keys: knownKeys(),
    events,
    dispatcher,
    rateWindows: createRateWindows(),
    chance,
    settings: defaultSettings(),
    get faults() {
      return faults;
    },
    setFaults(next) {
      faults = next;
      Object.assign(chance, faultStreams(next));
    },
    mayTie: false,
    sendTest(space, endpointId, type) {
      const endpoint = space.webhookEndpoints.get(endpointId);
      if (endpoint === undefined) throw new Error(`no webhook endpoint ${endpointId}`);
      const subject: EventSubject = { kind: "webhook_endpoint", record: endpoint };
      const event = record(space, type, subject, null);
      dispatcher.publishTo(event, endpoint);
      return event;
    },
    noteRequest() {
      requests += 1;
    },
    revision() {
      const { created, accepted, refused, lost, failed } = dispatcher.counts;
      return [requests, jobsRun, created, accepted, refused, lost, failed].join(" ");
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

/** No event shows the cycles of a subscription; kept in each, those of a daily one would soon fill the memory. */
function slimmed(subject: EventSubject): EventSubject {
  if (subject.kind !== "subscription") return subject;
  return { kind: "subscription", record: { ...subject.record, cycles: [] } };
}

function faultStreams({ seed }: Faults): Pick<Chance, "faults" | "flaws" | "api"> {
  return {
    faults: seededRandom(String(seed)),
    flaws: seededRandom(`${seed}/flaws`),
    api: seededRandom(`${seed}/api`),
  };
}
