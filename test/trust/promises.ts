import type { NamedTest } from "./named-tests.ts";

export interface StatedPromise {
  /** As README.md and docs/architecture.md make it. */
  promise: string;
  tests: NamedTest[];
}

const held = (promise: string, ...tests: readonly [file: string, title: string][]): StatedPromise => ({
  promise,
  tests: tests.map(([file, title]) => ({ file: `test/${file}.test.ts`, title })),
});

/** What Tallyhook promises, and the tests that fail when it does not hold. docs/promises.md is made from this list. */
export const promises: readonly StatedPromise[] = [
  held(
    "A 2xx means committed: the exact bytes are in PostgreSQL before the service hears it.",
    ["inbox/append", "commits it before it is acknowledged, ready to be applied"],
    ["inbox/append", "keeps the bytes as they are: every byte value, an empty body, a large one"],
    ["inbox/append", "the outcome of a flush that was cut is a refusal, never an acknowledgement"],
    ["e2e/crashes", "what was acknowledged is stored once and applied once, whatever is killed under load"],
  ),
  held(
    "Redis may be empty, down or flushed: nothing is lost, since the queue only wakes workers.",
    ["e2e/redis-outages", "without Redis from the start: accepts, says degraded, and the relay applies"],
    ["e2e/redis-outages", "when Redis comes, the queue and the schedules work without a restart"],
    ["e2e/redis-outages", "flushed again and again: everything is applied within a minute, schedules come back"],
    ["e2e/redis-outages", "crashed and started empty: the queue works again"],
    ["e2e/redis-outages", "and after all of it, the mirror equals the model and no event was refused"],
  ),
  held(
    "Without PostgreSQL the answer is 503, and everything goes on by itself when it is back.",
    ["receiver/outage", "a database that is killed: 503 in time, and events are taken again when it is back"],
    ["e2e/postgres-outages", "a database that hangs: 503 within ten seconds, then it goes on"],
    ["e2e/postgres-outages", "a database that is down: 503, then it goes on"],
    ["e2e/postgres-outages", "and after all of it, the mirror equals the model, and the same processes run"],
  ),
  held(
    "Authentic bytes are never lost, also with an unknown type, a missing field or broken JSON.",
    [
      "receiver/extract-event",
      "never throws, always gives an id that a column takes, and the same one for the same bytes",
    ],
    ["worker/apply-batch", "money that cannot be read: dead, the field named, the rest of the batch applied"],
    ["inbox/append", "of one id with other bytes are stored as well"],
  ),
  held(
    "An authentic event is not refused for a secret that was just added: a 401 comes after the secrets were read.",
    [
      "receiver/rotation",
      "secrets added at any moment while the receiver runs verify the very first event signed with them",
    ],
    ["receiver/rotation", "what might be signed with a secret that cannot be read now gets 503, and 200 when it can"],
  ),
  held(
    "Any order, any number of times: the mirror ends in the same state, the service's last one.",
    ["mirror/any-order", "every permutation of 4 deliveries leaves one mirror, for many histories"],
    ["mirror/any-order", "before a read settles anything, every permutation leaves the same rows, versions and all"],
    ["worker/apply-batch", "is applied once, however often it is handed over, and again after a replay"],
  ),
  held("Only the mirror's room writes the mirror.", ["architecture", "writes the mirror in one folder"]),
  held(
    "Effects commit together: rows, history, the event's state, refetches and alerts are one transaction.",
    [
      "worker/apply-batch",
      "leaves nothing behind when its end fails: rows, history, reads, alerts and states are one transaction",
    ],
    ["worker/apply-batch", "brings mirror and inbox up to date together"],
  ),
  held(
    "An alert never decides what is stored: one that fails takes no data with it.",
    [
      "worker/isolated-alerts",
      "is named in its place, and the events and the other alerts of its batch are not touched",
    ],
    ["worker/isolated-alerts", "costs no event even where nothing at all can be written about it"],
  ),
  held(
    "Verification is never off: no unset, empty or short secret disables it.",
    ["contract/signature/signature-schemes", "refuses everything when there is no secret"],
    ["contract/signature/signature-schemes", "never verifies with the short secret %j"],
    ["receiver/webhook-signatures", "without any secret nothing verifies, not even what is signed with nothing"],
  ),
  held(
    "History keeps every distinct state, and the database refuses to change it.",
    ["mirror/history", "keeps every distinct state, also one that lost, once"],
    ["mirror/history", "refuses to %s"],
  ),
  held(
    "Complete or says so: no report says PASS over a gap.",
    ["reports/base/verdict", "is PASS where everything up to the end of the period was read"],
    ["reports/base/verdict", "is INCOMPLETE where a gap lies before the period, since the opening balance needs it"],
    ["reconcile/coverage/coverage", "every hole is named"],
  ),
  held(
    "One run reconciles at a time, and one that was replaced writes nothing more.",
    ["reconcile/runs/run-lease", "one holder at a time, whose earlier one writes nothing"],
    [
      "reconcile/same-account",
      "another merchant's key is refused before anything is written (%s), and its own goes on as if nothing had been",
    ],
  ),
  held(
    "A report as of a time never changes.",
    ["reports/as-of-for-ever", "every report as of a time prints the same whatever happens later (history %i)"],
    ["limits", "a writer is ended by %s"],
  ),
  held(
    "A closed month cannot be changed without being noticed.",
    ["reports/close/seal", "a change of any column of $table where $where is noticed and named"],
    ["reports/close/seal", "cannot remove the first or the middle of the chain"],
    ["reports/close/close-month", "is permanent: the database refuses a change, and a change by force is found"],
  ),
  held(
    "Absence raises an alert too: a retry that never came, webhooks that cease, a nightly run that is missing.",
    ["alerts/rules/absence", "a retry that was due and never came, until it comes"],
    ["alerts/rules/absence", "an hour without events that usually brings them, by the service's clock"],
    ["alerts/rules/absence", "a reconciliation that did not run"],
  ),
  held(
    "An alert is sent at least once, and a repeat bears the same key.",
    [
      "alerts/outbox/killed-senders",
      "a sender that is killed five times between sending and marking misses nothing; repeats bear the same key",
    ],
    ["alerts/outbox/start-sender", "several senders share the work and send nothing twice"],
  ),
  held(
    "A handler runs on each change at least once and in order, and with `transactional` exactly once.",
    [
      "dispatch/kill",
      "what a killed process was running is taken up again: each change in its order at least once, in a transaction exactly once",
    ],
    ["dispatch/hostile-handlers", "whatever a handler throws is a failure with a name, and nothing else"],
  ),
  held(
    "A change of the feed is missed by no reader, whatever order writers commit in.",
    [
      "feed/psql-reader",
      'the page\'s SQL, run by two psql under one name, misses and doubles none of ${wanted.toLocaleString("en")} changes that ${writers} writers commit out of order, and reading by the highest number misses some',
    ],
    [
      "feed/stopped-consumer",
      "a consumer that stops for a week is told of, and finds every change of that week when it returns, in order",
    ],
  ),
  held(
    "A forwarded change arrives signed, and in the order of its object.",
    [
      "forward/forward-changes",
      "each change arrives once, signed as Standard Webhooks, in the order of its object, with the object as it left it",
    ],
    [
      "forward/forward-webhooks",
      "each webhook arrives once, byte for byte, under its event's id, in the order of its object",
    ],
  ),
  held(
    "No card number is kept.",
    ["worker/mask-bodies", "a card number in an event is masked in rows, history and bytes, and told once a field"],
    [
      "reconcile/card-numbers",
      "a card number that the service shows is masked by the import, told, and no drift ever after",
    ],
  ),
  held("An erased person is found nowhere, whatever arrives later.", [
    "e2e/erasure",
    "is found nowhere, whatever arrives later, and nobody else is touched",
  ]),
  held(
    "No page of the dashboard is open to who is not signed in, and no role does what is not its own.",
    ["dashboard/access", "somebody who is not signed in is sent to sign in, by every route but those for signing in"],
    ["dashboard/attacks", "of something real lets the role %s do nothing that is not theirs"],
  ),
  held(
    "A process that is asked to stop ends in order and loses nothing that was acknowledged.",
    ["receiver/shutdown", "closing under load loses nothing that was acknowledged, and does not take long"],
    ["e2e/start", "is ready on the defaults, makes a past for the sandbox, and Ctrl-C ends all of it"],
  ),
  held(
    "No process starts on a schema that it does not fit, and it says what to do.",
    ["main/not-migrated", "%s %s says what to do on a database that is not migrated"],
    ["main/not-migrated", "%s %s does not start where something it may need was taken away, and says what to do"],
    [
      "main/not-migrated",
      "a process starts beside what only adds, and beside what takes away only what it has ceased to use",
    ],
  ),
  held(
    "A migration keeps nobody waiting for long, and one that fails leaves nothing half done.",
    [
      "platform/postgres/migrating-under-load",
      "an insert into the inbox passes a migration that waits for the table behind a long report",
    ],
    [
      "platform/postgres/migrating-under-load",
      "a migration that gets no lock in time says so, and nothing is half done",
    ],
    ["platform/postgres/migrations", "are applied by one of two processes that migrate at once"],
  ),
  held(
    "A fork's own handlers, reports, tables and settings outlive upgrades.",
    [
      "migrations/fork",
      "a fork with its own handler, report, table and settings merges a release without a conflict, and all of it goes on",
    ],
    ["platform/postgres/migrations", "has its own numbers, stands on the program's, and outlives its upgrades"],
  ),
  held(
    "Nothing but Node is needed to try it: PostgreSQL comes with the packages, a local stand-in plays the service.",
    ["e2e/start", "is ready on the defaults, makes a past for the sandbox, and Ctrl-C ends all of it"],
  ),
  held(
    "A new secret is shown once, and it is stored: a crash, a lost answer or a second click makes no second rotation.",
    ["main/cli/endpoint-crashes", "a rotation is finished by the next run: one rotation, both secrets kept"],
    ["dashboard/endpoint", "rotates once by a double click"],
    [
      "dashboard/endpoint",
      "rotates nothing while a rotation waits for its answer, and does not take it for an interrupted one",
    ],
  ),
  held(
    "After a loss, a backup and a reconciliation give the service's state again, and nobody is told twice what they knew.",
    ["e2e/restore", "after a loss, an old backup and a reconciliation give the service's state, and tell nobody twice"],
    [
      "e2e/total-loss",
      "after the loss of the database without a backup, webhooks and the mirror are back, and what is open is told once more",
    ],
    [
      "e2e/total-loss",
      "after the loss of the encryption key no webhook is taken until the secret is new, and codes of an app are asked for again",
    ],
    [
      "main/cli/backup/backup",
      "one that ended before it noted what people were told starts nothing, until restored notes it",
    ],
  ),
  held(
    "A process under its role can do its work and nothing else.",
    ["e2e/roles", "take a webhook, apply it, alert, and run a handler on it; nothing is refused"],
    ["e2e/roles", "every scheduled task runs: the nightly run, upkeep, retention, mails, alerts; nothing is refused"],
    ["e2e/roles", "%s is refused everything that is not its work"],
  ),
  held(
    "What a person does is one act by command and by page: one record, one set of limits, one refusal.",
    ["main/doors", "leaves the same record and the same rows"],
    ["main/doors", "refuses what is not there in the same words"],
    ["main/doors", "has the same limits of what is typed"],
    ["main/doors", "what was refused has left nothing"],
  ),
  held(
    "A part is deleted with its folder and its line: the rest type-checks, and core alone applies events.",
    ["parts", "without $word the rest type-checks"],
    ["parts", "core migrates an empty database, and its worker applies an event without a warning"],
  ),
  held(
    "Metrics name no customer, scan no table that grows, and show no old number where a new one cannot be read.",
    ["main/metrics/process-metrics", "goes by indexes wherever a table grows"],
    ["main/metrics/process-metrics", "shows no token, and nothing of a customer"],
    [
      "platform/metrics/kept-reading",
      "shows nothing, and no old number, where it cannot read; and says so until it can",
    ],
    ["deployment/prometheus", "finds that each alert fires and is quiet when it should be"],
  ),
];
