import type { Clock } from "../../../platform/clock.ts";
import type { Log } from "../../../platform/log.ts";
import { type SeededRandom, seededRandom } from "../../../platform/random.ts";
import { settleIfDue } from "../resources/orders/charge-order.ts";
import { openChargeback } from "../resources/orders/order-transitions.ts";
import { seedCatalogue } from "../resources/seed-catalogue.ts";
import { billIfDue, completeIfOver, retryIfDue } from "../resources/subscriptions/bill-subscription.ts";
import { type Job, type SandboxClock, createSandboxClock } from "./clock.ts";
import type { Transport } from "./delivery/attempt.ts";
import { type Dispatcher, createDispatcher } from "./delivery/dispatcher.ts";
import { type EventLog, type EventRecord, type EventSubject, createEventLog } from "./event-log.ts";
import { type Faults, drawFlaws, noFaults } from "./faults.ts";
import { type Ids, createIds } from "./ids.ts";
import { type ApiKey, type Mode, firstMerchant, knownKeys, modes } from "./keys.ts";
import { type RateWindows, createRateWindows } from "./rate-limit.ts";
import { type Settings, defaultSettings } from "./settings.ts";
import { type Space, createSpace } from "./space.ts";

export interface Merchant {
  readonly id: string;
  readonly name: string;
  readonly spaces: Readonly<Record<Mode, Space>>;
}

/** Separate seeded streams, so that the timing of deliveries cannot change an id or a fault of a request. */
interface Chance {
  readonly deliveryIds: Ids;
  faults: SeededRandom;
  flaws: SeededRandom;
  api: SeededRandom;
}

/** Everything the sandbox knows. A reset makes a new one. */
export interface State {
  readonly seed: string;
  readonly time: SandboxClock;
  /** Keyed by id. A merchant sees no data of another. */
  readonly merchants: Map<string, Merchant>;
  /** The spaces of the merchant that exists from the start. */
  readonly spaces: Merchant["spaces"];
  /** Adds a merchant with an empty catalogue. */
  addMerchant(id: string, name: string): Merchant;
  readonly keys: Map<string, ApiKey>;
  readonly events: EventLog;
  readonly dispatcher: Dispatcher;
  readonly rateWindows: RateWindows;
  settings: Settings;
  readonly faults: Faults;
  /** Sets the faults and restarts their random stream from its seed. */
  setFaults(faults: Faults): void;
  /** The random streams for faults and delivery ids. */
  readonly chance: Chance;
  /** While true, changes within one millisecond may tie, if the setting `same_millisecond_ties` allows it. */
  mayTie: boolean;
  /** Sends an event of the given type to one endpoint, regardless of its subscriptions. */
  sendTest(space: Space, endpointId: string, type: string): EventRecord;
  /** Call it for each request that may change something. */
  noteRequest(): void;
  /** Changes whenever something may have changed. */
  revision(): string;
  /** Resolves when nothing is due or in progress. Later retries do not count. */
  idle(): Promise<void>;
  close(): void;
}

export interface StateDeps {
  wallClock: Clock;
  log: Log;
  transport: Transport;
  /** The sandbox's own URL, such as `http://127.0.0.1:4010`. */
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
  const time = createSandboxClock({
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
      // The first merchant gets the same ids whether or not there are others.
      ids: createIds(merchant === firstMerchant ? `${seed}/${mode}` : `${seed}/${merchant}/${mode}`),
      time,
      settings: () => state.settings,
      touch: (previous) => nextUpdatedAt(time.iso(), previous, state.mayTie || state.settings.same_millisecond_ties),
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
        // Due jobs run in the turn after they fell due; the deliveries they cause are already pending.
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

/**
 * A subscription without its cycles. No event shows them, and a copy in each event of a daily one would soon fill the
 * memory.
 */
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

/** Runs a due job. It reads the current state, and does nothing if it no longer applies. */
function runJob(space: Space, kind: Exclude<Job["kind"], "delivery">, id: string): void {
  switch (kind) {
    case "billing":
      return billIfDue(space, id);
    case "dunning":
      return retryIfDue(space, id);
    case "completion":
      return completeIfOver(space, id);
    case "settlement":
      settleIfDue(space, id);
      return;
    case "chargeback":
      return chargeBackIfCaptured(space, id);
  }
}

/**
 * Opens the chargeback that test card 4000000000000259 causes, unless the order was voided or fully refunded before.
 */
function chargeBackIfCaptured(space: Space, orderId: string): void {
  const order = space.orders.get(orderId);
  if (order?.status === "succeeded" || order?.status === "partially_refunded") {
    openChargeback(space, order);
  }
}

/**
 * The `updated_at` of a changed object: now, but always after the previous one. Two changes within a millisecond get
 * neighbouring milliseconds unless `mayTie`, and the value never falls when the clock is set back. Both are ISO 8601 in
 * UTC with milliseconds, so that they sort as text.
 */
export function nextUpdatedAt(now: string, previous: string, mayTie: boolean): string {
  if (now > previous) return now;
  if (mayTie) return previous;
  return new Date(Date.parse(previous) + 1).toISOString();
}
