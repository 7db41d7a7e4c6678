import { randomUUID } from "node:crypto";
import type { Knex } from "knex";
import { openChannels } from "../../src/parts/alerts/channels/channel-kinds.ts";
import { defaultSenderOptions, startSender } from "../../src/parts/alerts/outbox/sender.ts";
import { assessRun } from "../../src/parts/alerts/rules/reconciliation.ts";
import type { RunOutcome } from "../../src/app/run-listener.ts";
import { wallClock } from "../../src/platform/clock.ts";
import { createLog } from "../../src/platform/log.ts";
import { type Random, seededRandom } from "../../src/platform/random.ts";
import { applyBatch } from "../../src/core/worker/apply-batch.ts";
import { sampleCustomer, sampleEntry, sampleOrder, sampleSubscription } from "../mirror/samples.ts";
import { eventually } from "../support/eventually.ts";
import { applyDeps } from "../worker/worker-stand.ts";
import { channelDeps } from "./channels/channel-deps.ts";
import { type ReceivedPost, startChannelServer } from "./channels/channel-server.ts";
import { standingClock, sweep } from "./sweep-stand.ts";
import { settingsOf, testAlertContext, toldTo } from "./test-alert-context.ts";

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;

/** What a shop's month is made of. */
export interface MonthModel {
  renewals: number;
  days: number;
  /** Of the renewals. */
  declined: number;
  chargebacks: number;
  /** How much of it passes at once: an hour is as a deployment would see it, more is quicker. */
  stepHours: number;
  seed: string;
}

/** Why cards are declined, as shares of all declines, and how often each retry of such a one succeeds. */
const causes: readonly { code: string; share: number; recovers: number }[] = [
  { code: "insufficient_funds", share: 0.44, recovers: 0.3 },
  { code: "do_not_honor", share: 0.2, recovers: 0.25 },
  { code: "processor_declined", share: 0.05, recovers: 0.35 },
  { code: "card_limit_exceeded", share: 0.04, recovers: 0.3 },
  { code: "issuer_unavailable", share: 0.02, recovers: 0.8 },
  { code: "expired_card", share: 0.08, recovers: 0.03 },
  { code: "invalid_account", share: 0.03, recovers: 0.02 },
  { code: "incorrect_cvv", share: 0.01, recovers: 0.02 },
  { code: "closed_card", share: 0.03, recovers: 0 },
  { code: "blocked_card", share: 0.03, recovers: 0.05 },
  { code: "transaction_not_allowed", share: 0.02, recovers: 0.02 },
  { code: "lost_stolen_card", share: 0.02, recovers: 0 },
  { code: "fraud_suspected", share: 0.02, recovers: 0 },
  { code: "validation_error", share: 0.01, recovers: 0.9 },
];
/** After each declined try but the last. */
const retryAfterDays = [1, 3, 3];
const canceledShare = 0.03;

interface TimedEvent {
  atMs: number;
  type: string;
  object: object;
}

/**
 * The events of a month, by the service's clock from `startMs` on, in the order of their times. Repeats by its seed.
 */
function monthOfEvents(model: MonthModel, startMs: number): TimedEvent[] {
  const random = seededRandom(model.seed);
  const events: TimedEvent[] = [];
  for (let n = 0; n < model.renewals; n++) {
    const atMs = Math.round(startMs + random() * model.days * dayMs);
    const isDeclined = random() < model.declined;
    const isDisputed = !isDeclined && random() < model.chargebacks;
    const renewal = newRenewal(n, random);
    if (isDeclined) events.push(...dunning(renewal, atMs, random));
    else events.push(renewal.paid(atMs));
    if (isDisputed) events.push(...dispute(renewal, atMs, random));
  }
  const inMonth = events.filter(({ atMs }) => atMs < startMs + model.days * dayMs);
  return inMonth.sort((a, b) => a.atMs - b.atMs);
}

interface Renewal {
  customer(atMs: number): TimedEvent;
  paid(atMs: number, tries?: number): TimedEvent;
  failed(atMs: number, failure: { code: string; tries: number; nextMs: number | null }): TimedEvent;
  disputed(atMs: number, status: string): TimedEvent;
  canceled(atMs: number): TimedEvent;
}

/** Ids are UUIDs, as the service's are. */
function newRenewal(n: number, random: Random): Renewal {
  const uuid = (kind: number): string =>
    `${String(kind).padStart(8, "0")}-0000-4000-8000-${String(n).padStart(12, "0")}`;
  const [id, customerId, subscriptionId] = [uuid(1), uuid(2), uuid(3)];
  const total = 900 + Math.floor(random() * 20) * 250;
  const time = (ms: number): string => new Date(ms).toISOString();
  const sales = new Map<number, object>();
  let createdMs: number | null = null;
  const tryAt = (number: number, atMs: number, fields: object): void => {
    createdMs ??= atMs;
    const times = { created_at: time(atMs), updated_at: time(atMs) };
    sales.set(number, sampleEntry({ id: uuid(10 + number), amount: total, ...times, ...fields }));
  };
  const order = (atMs: number, fields: object): object =>
    sampleOrder({
      id,
      order_number: `R${String(n).padStart(7, "0")}`,
      customer_id: customerId,
      subscription_id: subscriptionId,
      subscription_cycle: 5,
      subtotal: total,
      discount_amount: 0,
      total,
      payment_method: { id: uuid(4), card_brand: "visa", card_last_four: "4242" },
      transactions: [...sales.values()],
      created_at: time(createdMs ?? atMs),
      updated_at: time(atMs),
      ...fields,
    });
  const plain = { created_at: time(0), updated_at: time(0) };
  return {
    customer: (atMs) => ({
      atMs,
      type: "customer.updated",
      object: sampleCustomer({ ...plain, id: customerId, email: `person${n}@shop${n}.example` }),
    }),
    paid(atMs, tries = 1) {
      tryAt(tries, atMs, { status: "succeeded" });
      return { atMs, type: "order.succeeded", object: order(atMs, { status: "succeeded" }) };
    },
    failed(atMs, { code, tries, nextMs }) {
      tryAt(tries, atMs, { status: "failed", failure_code: code });
      const next = nextMs === null ? null : time(nextMs);
      const shown = { attempt_count: tries, next_retry_at: next, failure_code: code };
      return { atMs, type: "order.failed", object: order(atMs, { status: "failed", ...shown }) };
    },
    disputed: (atMs, status) => ({
      atMs,
      type: `order.${status}`,
      object: order(atMs, { status }),
    }),
    canceled(atMs) {
      const ended = { status: "canceled", canceled_at: time(atMs), updated_at: time(atMs) };
      const subscription = { id: subscriptionId, customer_id: customerId, created_at: time(0) };
      const object = sampleSubscription({ ...subscription, ...ended });
      return { atMs, type: "subscription.canceled", object };
    },
  };
}

function dunning(renewal: Renewal, startMs: number, random: Random): TimedEvent[] {
  const cause = pick(random);
  const isCanceled = random() < canceledShare;
  const events = [renewal.customer(startMs - minuteMs)];
  let atMs = startMs;
  for (let tries = 1; ; tries++) {
    if (tries > 1 && random() < cause.recovers) return [...events, renewal.paid(atMs, tries)];
    const days = retryAfterDays[tries - 1];
    const nextMs = days === undefined ? null : atMs + days * dayMs;
    events.push(renewal.failed(atMs, { code: cause.code, tries, nextMs }));
    if (nextMs === null) return events;
    if (isCanceled && tries === 2) return [...events, renewal.canceled(atMs + hourMs)];
    atMs = nextMs;
  }
}

function dispute(renewal: Renewal, paidMs: number, random: Random): TimedEvent[] {
  const openedMs = paidMs + (2 + random() * 8) * dayMs;
  const endedMs = openedMs + (3 + random() * 10) * dayMs;
  const end = random() < 0.3 ? "chargeback_dismissed" : "chargeback_accepted";
  return [renewal.disputed(openedMs, "chargeback"), renewal.disputed(endedMs, end)].map((event) => {
    return { ...event, atMs: Math.round(event.atMs) };
  });
}

function pick(random: Random) {
  let left = random();
  for (const cause of causes) {
    left -= cause.share;
    if (left < 0) return cause;
  }
  return causes[0]!;
}

/** What came to a channel, as its reader sees it. */
export interface ToldMessage {
  rule: string;
  stage: string;
  action: string;
  title: string;
  text: string;
}

export interface MonthReport {
  declined: number;
  /** In the chat, which is told of everything. */
  chat: ToldMessage[];
  /** At the pager, which only escalations reach. */
  pager: ToldMessage[];
}

/**
 * Lives through a month, step by step: events are stored and applied, the sweep runs, and a real sender posts to real
 * HTTP receivers. Besides declines the month has a day on which a new type of event appears, an hour without webhooks,
 * a night that was left out, one that ended incomplete, and one that healed what was missed. Nobody acknowledges
 * anything.
 */
export async function liveThroughMonth(db: Knex, model: MonthModel): Promise<MonthReport> {
  const server = await startChannelServer();
  const secrets = { ALERT_CHAT: `${server.url}/chat`, ALERT_KEY: "integration-key" };
  const settings = settingsOf({
    channels: {
      chat: { kind: "slack", urlFrom: "ALERT_CHAT" },
      pager: { kind: "pagerduty", routingKeyFrom: "ALERT_KEY", url: `${server.url}/pager` },
    },
    defaultChannels: ["chat"],
    destinations: { privateHosts: ["127.0.0.1"] },
    escalation: [{ afterMinutes: 30, channels: ["pager"] }],
  });
  const startMs = Math.ceil(Date.now() / hourMs) * hourMs;
  const clock = standingClock(new Date(startMs).toISOString());
  const alertContext = testAlertContext({ settings, clock, serviceClock: clock });
  const log = createLog({ level: "fatal", name: "test" });
  const sender = startSender(
    { db, log, clock: wallClock, random: seededRandom("month") },
    openChannels(settings.channels, channelDeps({ privateHosts: ["127.0.0.1"], secrets })),
    { ...defaultSenderOptions, pollMs: 40 },
  );
  try {
    const events = monthOfEvents(model, startMs);
    await rememberBusyHours(db, startMs, model);
    const arrivals = events.map((event) => ({ event, atMs: arrivalOf(event, startMs) }));
    // The month is another one than that in which the events are received.
    const deps = { ...applyDeps(db), ...toldTo(alertContext), isClockMovable: true };
    let from = 0;
    for (let hour = model.stepHours; hour <= model.days * 24; hour += model.stepHours) {
      const nowMs = startMs + hour * hourMs;
      clock.set(new Date(nowMs).toISOString());
      const to = arrivals.findIndex(({ atMs }, n) => n >= from && atMs >= nowMs);
      const end = to === -1 ? arrivals.length : to;
      const due = arrivals.slice(from, end).map(({ event }) => event);
      from = end;
      if (passed(hour, model.stepHours, deployHour)) due.push(...deployedEvents(nowMs));
      const seqs = await store(db, due);
      if (seqs.length > 0) await applyBatch(deps, seqs);
      if (passed(hour % 24, model.stepHours, nightHour)) {
        await reconcileNight(db, alertContext, Math.ceil(hour / 24), nowMs);
      }
      await sweep(db, alertContext, { sends: false });
      await allSent(db);
      await passTime(db, hour, model.stepHours);
    }
    await allSent(db);
    const told = server.posts.map(readPost);
    const declined = new Set(events.flatMap(({ type, object }) => (type === "order.failed" ? [idOf(object)] : [])));
    return {
      declined: declined.size,
      chat: told.flatMap(({ channel, message }) => (channel === "chat" ? [message] : [])),
      pager: told.flatMap(({ channel, message }) => (channel === "pager" ? [message] : [])),
    };
  } finally {
    await sender.close();
    await server.close();
  }
}

/** The hours of the month, from its beginning, at which something happens. */
const deployHour = 10 * 24 + 11;
const hourWithoutEvents = 20 * 24 + 9;
const nightHour = 4;

/** Whether the step that ends at `hour` had this hour in it. */
const passed = (hour: number, stepHours: number, wanted: number): boolean =>
  hour >= wanted && hour - stepHours < wanted;

/** In the silent hour and the next nothing arrives; then all of it does. */
function arrivalOf({ atMs }: TimedEvent, startMs: number): number {
  const [from, to] = [startMs + hourWithoutEvents * hourMs, startMs + (hourWithoutEvents + 2) * hourMs];
  return atMs >= from && atMs < to ? to : atMs;
}

const idOf = (object: object): string => (object as { id: string }).id;

/** A type of event that nobody has seen before comes with a deploy of the service. */
const deployedEvents = (atMs: number): TimedEvent[] =>
  [1, 2, 3].map((n) => ({ atMs, type: "invoice.created", object: { id: `invoice-${n}` } }));

/** The weeks before brought events in every hour. */
async function rememberBusyHours(db: Knex, startMs: number, { renewals, days }: MonthModel): Promise<void> {
  await db.raw(
    `insert into alerts.event_hours (hour, events)
     select ?::timestamptz - make_interval(hours => n), ?::int from generate_series(1, 24 * 35) n`,
    [new Date(startMs), Math.floor(renewals / days / 24)],
  );
}

/** Received a moment ago, so that the look through the inbox takes them at once. */
async function store(db: Knex, events: readonly TimedEvent[]): Promise<number[]> {
  if (events.length === 0) return [];
  const bodies = events.map(({ atMs, type, object }) => {
    const created = new Date(atMs).toISOString();
    return { id: randomUUID(), type, created_at: created, data: { object } };
  });
  const { rows } = await db.raw<{ rows: { seq: string }[] }>(
    `with stored as (
       insert into inbox.receipts (event_id, raw_sha256, type, event_created_at, received_at, raw, secret_id)
       select body->>'id', sha256(convert_to(body::text, 'UTF8')), body->>'type',
              (body->>'created_at')::timestamptz, now() - interval '20 seconds', convert_to(body::text, 'UTF8'), 'env-1'
       from jsonb_array_elements(?::jsonb) with ordinality as each(body, n) order by n returning seq
     )
     insert into inbox.progress (seq) select seq from stored returning seq`,
    [JSON.stringify(bodies)],
  );
  return rows.map(({ seq }) => Number(seq)).sort((a, b) => a - b);
}

async function reconcileNight(
  db: Knex,
  alertContext: Parameters<typeof assessRun>[1],
  night: number,
  nowMs: number,
): Promise<void> {
  if (night === 13) return;
  await db("reconcile.runs").insert({
    run_key: `night ${night}`,
    kind: "nightly",
    t0: new Date(nowMs),
    started_at: new Date(nowMs),
  });
  const outcome: RunOutcome = {
    id: night,
    kind: "nightly",
    isInitialImport: false,
    complete: night !== 16,
    error: night === 16 ? "the service did not answer in time" : null,
    healed: night === 22 ? { missing_here: 3 } : {},
    left: {},
    acknowledged: {},
    amountAtRiskMinor: {},
    slices: { failed: night === 16 ? 1 : 0, pending: 0 },
    confirmed: {},
  };
  await assessRun({ db, log: createLog({ level: "fatal", name: "test" }) }, alertContext, outcome);
}

/** Waits until the sender has sent what is due. */
const allSent = (db: Knex): Promise<unknown> =>
  eventually(
    "everything that is due was sent",
    async () => {
      const row = await db("alerts.outbox").where("state", "pending").where("due_at", "<=", db.fn.now()).first("id");
      return row === undefined;
    },
    { withinMs: 60_000, everyMs: 20 },
  );

/** The database's clock stands at today: what is stored grows older instead, the old a day at a time. */
async function passTime(db: Knex, hour: number, hours: number): Promise<void> {
  const recent = db.raw("recorded_at > now() - interval '1 day'");
  await db("alerts.history")
    .where(recent)
    .update({ recorded_at: db.raw("recorded_at - make_interval(hours => ?)", [hours]) });
  if (hour % 24 !== 0) return;
  await db("alerts.history")
    .whereNot(recent)
    .update({ recorded_at: db.raw("recorded_at - interval '1 day'") });
  await db("alerts.marks").update({ updated_at: db.raw("updated_at - interval '1 day'") });
}

function readPost({ path, body }: ReceivedPost): { channel: string; message: ToldMessage } {
  const json = JSON.parse(body) as Record<string, never>;
  if (path === "/chat") {
    const { text, blocks } = json as unknown as {
      text: string;
      blocks: { elements?: { text: string }[] }[];
    };
    const [action = "", rule = "", stage = ""] = blocks.at(-1)?.elements?.at(-1)?.text.split(" · ") ?? [];
    const title = /\[[A-Z]+\] (.*) #[0-9a-f]{8}$/s.exec(text)?.[1] ?? text;
    return { channel: "chat", message: { rule, stage, action, title, text: body } };
  }
  const { event_action: action, payload } = json as unknown as {
    event_action: string;
    payload?: { class: string; summary: string; custom_details: { Stage: string } };
  };
  return {
    channel: "pager",
    message: {
      rule: payload?.class ?? "",
      stage: payload?.custom_details.Stage ?? "",
      action,
      title: payload?.summary ?? "",
      text: body,
    },
  };
}

/** How many messages each rule sent, the most first: `dunning_renewal attempt 312`. */
export function countsByRule(messages: readonly ToldMessage[]): Record<string, number> {
  const counts = new Map<string, number>();
  for (const { rule, stage, action } of messages) {
    const what = action === "resolve" ? "end" : stage.replace(/:.*$/s, "");
    const name = `${rule} ${what}`;
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return Object.fromEntries([...counts].sort(([, a], [, b]) => b - a));
}

/** What holds of every message: a short title without ids, and something to do in all but those that end an alert. */
export function flawsOf(messages: readonly ToldMessage[]): string[] {
  const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/i;
  return messages.flatMap(({ rule, stage, action, title, text }) => {
    const flaws = [
      ...(uuid.test(title) ? ["an id in its title"] : []),
      ...(title.length > 110 || /[\r\n]/.test(title) ? ["a title that is too long"] : []),
      ...(action === "alert" && !/What to do[^A-Z]*[A-Z]/.test(text) ? ["nothing to do"] : []),
      ...(/What to do:\*? Nothing/.test(text) ? ["nothing to do"] : []),
    ];
    return flaws.map((flaw) => `${rule} ${stage}: ${flaw}: ${title}`);
  });
}
