import { getAccount } from "../../../../core/contract/resources/account.ts";
import { rotateWebhookSecret, updateWebhookEndpoint } from "../../../../core/contract/resources/webhook-endpoints.ts";
import { tallyhook } from "../../../../platform/command-line.ts";
import type { Stage } from "./stage.ts";

export interface Fault {
  name: string;
  /** The fault in words, shown after the exercise. */
  says: string;
  /** The alert that has to fire. */
  rule: string;
  key: string;
  make(stage: Stage): Promise<unknown>;
  /** Hints for the team, one after the other. */
  hints: readonly string[];
  /** The repair by an outsider: a provider, or the machine's operator. Absent: the team does everything. */
  mend?(stage: Stage): Promise<unknown>;
  /** The team's repair, by the commands of the runbook. */
  repair(stage: Stage): Promise<unknown>;
  /** Whether it is repaired, apart from the end of the alert. */
  isRepaired(stage: Stage): Promise<boolean>;
  /** Used where the alert ends only after a time by the database's clock: moves stored dates back. */
  passTime?(stage: Stage): Promise<unknown>;
  /** Leaves the system as it was, once the fault is over. */
  after?(stage: Stage): Promise<unknown>;
}

const by = ["--by", "Game day"];

const customers = async ({ shop }: Stage, n: number): Promise<void> => {
  for (let made = 0; made < n; made++) await shop.customer();
};

const delivers = (stage: Stage): Promise<boolean> => stage.delivers();
const reconcile = ({ commands }: Stage): Promise<void> => commands.run(["reconcile"]);
const noRefusals = ({ db }: Stage) => db("receiver.answers_by_minute").delete();

const secretRotated: Fault = {
  name: "secret-rotated",
  says: "A colleague rotated the endpoint's secret in the merchant portal without telling anyone.",
  rule: "signature_failures",
  key: "signature:failed",
  async make(stage) {
    const { body } = await stage.client.send(
      rotateWebhookSecret,
      { params: { id: stage.endpointId }, body: { grace_period_hours: 1 } },
      { idempotencyKey: crypto.randomUUID(), signal: stage.signal },
    );
    stage.notes.set("secret", rotateWebhookSecret.answer.parse(body).new_signing_secret);
    await stage.control("POST", "/clock", { advance_seconds: 3_700 });
    await customers(stage, 8);
  },
  hints: [
    `Are other deliveries still accepted? "${tallyhook("secrets list")}" shows when each secret was last used.`,
    `"${tallyhook("endpoint rotate")}" makes a new secret and stores it. Then "${tallyhook("reconcile")}".`,
  ],
  async repair(stage) {
    await stage.commands.run(["secrets", "add", ...by], { input: stage.notes.get("secret") ?? "" });
    await reconcile(stage);
  },
  isRepaired: delivers,
  passTime: noRefusals,
};

const beatOf = (pid: number | undefined): string => `worker:${pid}:`;

const aliveWorkers = async ({ db }: Stage): Promise<number> => {
  const alive = await db("alerts.heartbeats")
    .whereRaw("starts_with(name, 'worker:') and beat_at > now() - interval '2 minutes'")
    .pluck("name");
  return alive.length;
};

const moveBeat = ({ db, notes }: Stage, minutes: number) =>
  db("alerts.heartbeats")
    .whereRaw("starts_with(name, ?)", [notes.get("worker") ?? "none"])
    .update({ beat_at: db.raw("beat_at - make_interval(mins => ?)", [minutes]) });

const workerStopped: Fault = {
  name: "worker-stopped",
  says: "One of two workers was killed. The other one noticed: the last one would notice nothing.",
  rule: "silence_worker",
  key: "silence:worker",
  async make(stage) {
    const worker = stage.commands.start(["worker"]);
    stage.notes.set("worker", beatOf(worker.pid));
    await stage.until("the second worker's heartbeat", async () => {
      const beats = await stage.db("alerts.heartbeats").pluck<string[]>("name");
      return beats.some((name) => name.startsWith(beatOf(worker.pid)));
    });
    worker.kill("SIGKILL");
    await moveBeat(stage, 10);
  },
  hints: [
    `"${tallyhook("doctor")}" says how many workers run.`,
    `Start another: "${tallyhook("worker")}", in a terminal of its own. The alert ends an hour later; here ` +
      "immediately.",
  ],
  async repair(stage) {
    stage.commands.start(["worker"]);
    await stage.until("a second worker", async () => (await aliveWorkers(stage)) > 1);
  },
  isRepaired: async (stage) => (await aliveWorkers(stage)) > 1,
  passTime: (stage) => moveBeat(stage, 120),
  // The next faults are about one worker.
  after: ({ commands }) => commands.close("SIGTERM"),
};

const lostWebhooks: Fault = {
  name: "lost-webhooks",
  says: "The network between the service and us lost every webhook.",
  rule: "silence_events",
  key: "silence:events",
  async make(stage) {
    await stage.control("PUT", "/faults", { delivery: { drop: 1 } });
    await usualHours(stage);
    await customers(stage, 3);
    await stage.control("POST", "/clock", { advance_seconds: 2 * 3_600 });
    await stage.client.get(getAccount, {}, { signal: stage.signal });
  },
  hints: [
    `"${tallyhook("endpoint list")}": the endpoint is enabled. "${tallyhook("events list --limit 3")}": nothing ` +
      "arrives.",
    "Nothing here is wrong: call the network team (mend). What was lost does not come again.",
    `"${tallyhook("reconcile")}" reads it from the service.`,
  ],
  mend: ({ control }) => control("PUT", "/faults", {}),
  repair: reconcile,
  isRepaired: delivers,
};

/** A month in which every hour around this one brought events. */
async function usualHours({ db, control }: Stage): Promise<void> {
  const { clock } = await control<{ clock: { now: string } }>("GET", "");
  await db.raw(
    `insert into alerts.event_hours (hour, events)
     select date_trunc('hour', ?::timestamptz, 'UTC') + make_interval(hours => h) - make_interval(weeks => w), 40
     from generate_series(-3, 6) h, generate_series(1, 4) w on conflict (hour) do update set events = excluded.events`,
    [clock.now],
  );
}

const waveOrders = 25;

const chargebackWave: Fault = {
  name: "chargeback-wave",
  says: "Cards that were stolen together were disputed together.",
  rule: "chargeback",
  key: "storm:chargebacks",
  async make({ db, shop, notes }) {
    const ids = await db("mirror.orders")
      .where("status", "succeeded")
      .orderBy("id")
      .limit(waveOrders)
      .pluck<string[]>("id");
    notes.set("wave", ids.join());
    for (const id of ids) await shop.moveOrder(id, "chargeback");
  },
  hints: [
    `"${tallyhook("report chargebacks")}" lists them; /chargebacks of a dashboard makes the evidence.`,
    "The banks decide the cases later (mend). Acknowledge the incident: " +
      `"${tallyhook("alerts ack storm:chargebacks")}".`,
  ],
  async mend({ shop, notes }) {
    for (const [n, id] of (notes.get("wave") ?? "").split(",").entries()) {
      await shop.moveOrder(id, n % 2 === 0 ? "chargeback_dismiss" : "chargeback_accept");
    }
  },
  repair: ({ commands }) => commands.run(["alerts", "ack", "storm:chargebacks", ...by]),
  async isRepaired({ db }) {
    const open = await db("alerts.alerts").where({ key: "storm:chargebacks", state: "open" }).first("id");
    return open === undefined;
  },
  passTime: ({ db }) => db("alerts.history").update({ recorded_at: db.raw("recorded_at - interval '1 hour'") }),
};

const dead = async ({ db }: Stage): Promise<number> =>
  (await db("inbox.progress").where("state", "dead").pluck("seq")).length;

const deadEvents: Fault = {
  name: "dead-events",
  says: "A deployment brought a wrong SVC_EVENT_PLACES to the worker: it found no object in any event.",
  rule: "event_dead",
  key: "dead:",
  async make(stage) {
    await stage.restartWorker({ SVC_EVENT_PLACES: "object=data.item" });
    // A worker that people have left running applies some of them.
    await stage.until("dead events", async () => {
      await stage.shop.customer();
      return (await dead(stage)) > 0;
    });
  },
  hints: [
    `"${tallyhook("events list --state dead")}": do all have one reason?`,
    "Since when? Since the worker's last deployment: have it taken back (mend).",
    `"${tallyhook("events replay --dead")}".`,
  ],
  mend: (stage) => stage.restartWorker(),
  repair: ({ commands }) => commands.run(["events", "replay", "--dead", ...by]),
  async isRepaired(stage) {
    await stage.until("the replayed events", async () => (await dead(stage)) === 0);
    return true;
  },
};

const drift: Fault = {
  name: "drift",
  says: "An object changed at the service, and no event announced it.",
  rule: "reconcile_drift",
  key: "drift:",
  async make(stage) {
    const row = await stage
      .db("mirror.subscriptions")
      .where("status", "active")
      .orderBy("id")
      .first<{ id: string }>("id");
    await stage.control("POST", "/silent", {
      resource: "subscriptions",
      id: row.id,
      set: { status: "paused" },
    });
    await stage.commands.run(["reconcile", "--full", "--report-only"], { codes: [3] });
  },
  hints: [
    `"${tallyhook("findings list")}", then "${tallyhook("findings show ID")}": both values.`,
    `The run only reported. "${tallyhook("reconcile --full")}" heals it.`,
  ],
  repair: ({ commands }) => commands.run(["reconcile", "--full"]),
  async isRepaired({ db }) {
    const open = await db("reconcile.findings")
      .whereIn("state", ["open", "reopened"])
      .whereNot("class", "identity")
      .first("id");
    return open === undefined;
  },
};

const diskNearlyFull: Fault = {
  name: "disk-nearly-full",
  says: "Old exports filled the disk of the database. (The fault was simulated: no disk was filled.)",
  rule: "disk_space",
  key: "disk:database",
  make: async ({ disk }) => void (disk.freeBytes = disk.totalBytes * 0.04),
  hints: [
    "What fills it? Not the database's own files: never delete those. Have old exports removed (mend).",
    `"${tallyhook("events prune --older-than 90")}" deletes the payloads of old events.`,
  ],
  mend: async ({ disk }) => void (disk.freeBytes = disk.totalBytes * 0.6),
  repair: ({ commands }) => commands.run(["events", "prune", "--older-than", "90"]),
  isRepaired: async ({ disk }) => disk.freeBytes > disk.totalBytes / 10,
};

const clockSkew: Fault = {
  name: "clock-skew",
  says: "The clock of the receiver's machine ran ahead by a quarter of an hour.",
  rule: "signature_failures",
  key: "signature:stale",
  async make(stage) {
    stage.receiverSkew.ms = 15 * 60_000;
    await customers(stage, 8);
  },
  hints: [
    "The signatures fit, only their time does not: whose clock is wrong? On a real deployment doctor compares them.",
    "Have the clock of the receiver's machine set (mend). Do not widen the tolerance.",
    `"${tallyhook("reconcile")}" reads what was refused.`,
  ],
  mend: async ({ receiverSkew }) => void (receiverSkew.ms = 0),
  repair: reconcile,
  isRepaired: delivers,
  passTime: noRefusals,
};

const serviceDown: Fault = {
  name: "service-down",
  says: "The service went down in the middle of the nightly run: its lists answered 503.",
  rule: "reconcile_incomplete",
  key: "incomplete:",
  async make({ control, commands }) {
    const force = ["transactions", "subscriptions", "customers"].map((list) => {
      return { endpoint: `GET /${list}`, code: "service_unavailable" };
    });
    await control("PUT", "/faults", { api: { force } });
    await commands.run(["reconcile", "--full"], { codes: [2, 4, 70] });
  },
  hints: [
    `"${tallyhook("alerts list --rule reconcile_incomplete")}": the reason. The service's status page?`,
    "Nothing here is wrong: wait for the service (mend). Do not restart anything.",
    `"${tallyhook("reconcile")}" continues where the run stopped.`,
  ],
  mend: ({ control }) => control("PUT", "/faults", {}),
  repair: ({ commands }) => commands.run(["reconcile", "--full"]),
  isRepaired: async () => true,
};

const setEndpoint = (status: "enabled" | "disabled") => (stage: Stage) =>
  stage.client.send(
    updateWebhookEndpoint,
    { params: { id: stage.endpointId }, body: { status } },
    { idempotencyKey: crypto.randomUUID(), signal: stage.signal },
  );

const endpointDisabled: Fault = {
  name: "endpoint-disabled",
  says: "The service disabled our webhook endpoint.",
  rule: "endpoint",
  key: "endpoint:disabled:",
  async make(stage) {
    await setEndpoint("disabled")(stage);
    await stage.commands.run(["reconcile"]);
  },
  hints: [
    `"${tallyhook("endpoint list")}": its status.`,
    "Enable it at the service's portal (mend does that).",
    `"${tallyhook("endpoint test")}", then "${tallyhook("reconcile")}".`,
  ],
  mend: setEndpoint("enabled"),
  repair: reconcile,
  isRepaired: delivers,
};

/** In the order of play. */
export const faults: readonly Fault[] = [
  secretRotated,
  workerStopped,
  lostWebhooks,
  chargebackWave,
  deadEvents,
  drift,
  diskNearlyFull,
  clockSkew,
  serviceDown,
  endpointDisabled,
];
