/**
 * What a command leaves behind besides what it prints:
 * - `nothing`: it only reads.
 * - `acts`: a person's act, with each of these names in `people.audit`, written by the transaction that does it.
 * - `unrecorded`: it changes something that is no act of a person on the data kept here, and why.
 */
type Leaves = "nothing" | { acts: readonly string[] } | { unrecorded: string };

const acts = (...names: string[]): Leaves => ({ acts: names });
const unrecorded = (why: string): Leaves => ({ unrecorded: why });

const process = unrecorded("a process that runs until it is stopped: no person does what it does");
const trial = unrecorded(
  "it tries one change and undoes what is here; who is sent something, knows",
);
const run = unrecorded(
  "a run of reconciliation is a row of its own, and what it heals is in the history",
);
const elsewhere = unrecorded("it changes nothing in this deployment's database");

/** Every command, and what it leaves. A test holds the list against what is registered. */
export const commandActs: Readonly<Record<string, Leaves>> = {
  start: unrecorded("a process; --reset removes the embedded database, and the record with it"),
  receiver: process,
  worker: process,
  dashboard: unrecorded(
    "a process; a link by --sign-in is for the owner of the machine, and its use is recorded",
  ),
  "users list": "nothing",
  "users show": "nothing",
  "users add": acts("account.added"),
  "users roles": acts("account.roles-changed"),
  "users password": acts("account.password-changed"),
  "users totp": acts("account.totp-added", "account.totp-removed"),
  "users disable": acts("account.disabled"),
  "users enable": acts("account.enabled"),
  "users link": acts("sign-in-link.made"),
  "audit list": "nothing",
  "sandbox cards": "nothing",
  sandbox: elsewhere,
  trigger: elsewhere,
  migrate: unrecorded("tables and functions; what ran and when is in tallyhook.migrations"),
  roles: "nothing",
  upgrade: unrecorded("--rehearse works on a copy, which it removes"),
  backup: unrecorded("files outside the database; --keep is retention, which a timer does as well"),
  restore: acts("database.restored"),
  restored: acts("database.restored"),
  demo: elsewhere,
  gameday: elsewhere,
  metrics: "nothing",
  doctor: unrecorded("it sends a job round the queue"),
  settings: "nothing",
  "events list": "nothing",
  "events show": "nothing",
  "events replay": acts("event.replayed", "events.replayed"),
  "events prune": acts("events.pruned"),
  changes: "nothing",
  "changes consumers list": "nothing",
  "changes consumers remove": acts("consumer.removed"),
  reconcile: run,
  import: run,
  "findings list": "nothing",
  "findings show": "nothing",
  "findings ack": acts("finding.acknowledged"),
  heal: acts("object.healed"),
  "heal misdated": acts("misdated.healed"),
  report: unrecorded("--mail-to sends figures, --out writes a file; nothing here changes"),
  close: acts("month.closed"),
  "close prepare": acts("month.prepared"),
  "close withdraw": acts("month.withdrawn"),
  "close verify": "nothing",
  "close export": "nothing",
  "secrets list": "nothing",
  "secrets add": acts("secret.added"),
  "secrets retire": acts("secret.retired"),
  "endpoint register": acts("endpoint.registered"),
  "endpoint list": "nothing",
  "endpoint rotate": acts("endpoint.rotated"),
  "endpoint test": acts("endpoint.tested"),
  "endpoint remove": acts("endpoint.removed"),
  "alerts list": "nothing",
  "alerts show": "nothing",
  "alerts ack": acts("alert.acknowledged"),
  "alerts resend": acts("alert.resent"),
  "alerts silence": acts("silence.begun"),
  "alerts silences": "nothing",
  "alerts unsilence": acts("silence.ended"),
  "alerts test": unrecorded("it sends a message that says it is a test"),
  "handlers list": "nothing",
  "handlers show": "nothing",
  "handlers retry": acts("handler.retried"),
  "handlers skip": acts("handler.skipped"),
  "handlers pause": acts("handler.paused"),
  "handlers resume": acts("handler.resumed"),
  "handlers remove": acts("handler.removed"),
  "handlers test": trial,
  "handlers run": process,
  "handlers host": process,
  "forward list": "nothing",
  "forward show": "nothing",
  "forward retry": acts("handler.retried"),
  "forward skip": acts("handler.skipped"),
  "forward pause": acts("handler.paused"),
  "forward resume": acts("handler.resumed"),
  "forward remove": acts("handler.removed"),
  "forward test": trial,
  "customers erase": acts("customer.erased"),
  "signature explain": "nothing",
};
