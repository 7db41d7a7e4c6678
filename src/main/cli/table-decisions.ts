/**
 * What is decided of each table: what a backup does with it, and what each role of least privilege may do with it
 * (`tallyhook roles --sql`). A table without a decision fails a test.
 */

/**
 * What a backup does with a table.
 *
 * - `keep`: nobody else has it.
 * - `keep_though_rebuildable`: a reconciliation could read it from the service again. It is kept all the same: that takes
 *   hours, and to every reader of the feed each object would be new once more.
 * - `leave`: of no use after a restore, or harmful. The table comes back empty.
 */
export type BackupDecision = "keep" | "keep_though_rebuildable" | "leave";

/** A role for each process, `reports` for who prints reports and closes months, `bi` for tools that only read. */
export const roleNames = ["receiver", "worker", "reports", "dashboard", "bi"] as const;
export type RoleName = (typeof roleNames)[number];

/**
 * Letters as psql's `\dp` prints them: a insert, r select, w update, d delete; of a sequence U nextval, w setval. To insert
 * or update never reaches what the database fills by itself (`filledColumnsSql`), nor to update a key. L is the right to
 * update the whole table, which `lock table` takes; its triggers refuse the updates.
 */
export type Letters = string;

/**
 * Columns that the database would fill by itself, and which a statement gives all the same: what is due when, and what
 * was last noted. No time in here is one at which something is said to have happened, but for a close's, which its seal
 * covers and `reports.check_close` compares with the clock.
 */
export const givenColumns: readonly string[] = [
  "alerts.heartbeats.beat_at",
  "alerts.marks.updated_at",
  "alerts.outbox.due_at",
  "alerts.silences.began_at",
  "dispatch.handlers.resumed_at",
  "dispatch.runs.due_at",
  "feed.changes.seq",
  "feed.consumers.moved_at",
  "inbox.fetches.due_at",
  "inbox.receipts.seq",
  "mirror.misdated.ordered_at",
  "receiver.heartbeats.beat_at",
  "reconcile.order_takers.seen_at",
  "reports.closes.closed_at",
  "reports.mailings.next_attempt_at",
];

/** Rights on some columns of a table, besides those on all of it. */
export interface ColumnRights {
  all?: Letters;
  /** May be read. */
  select?: readonly string[];
  /** May be given in a new row; the others get their defaults, such as the time at which it was written. */
  insert?: readonly string[];
  /** May be changed. */
  update?: readonly string[];
  /** May not be read. A test holds both lists together against the schema. */
  withheld?: readonly string[];
}

export type Right = Letters | ColumnRights;

/** What each role may do; one that is not named may do nothing. */
export type Rights = { readonly [role in RoleName]?: Right };

export interface TableDecision extends Rights {
  backup: BackupDecision;
}

const words = (text: string): string[] => text.split(/\s+/);

const receiptWithoutBytes: ColumnRights = {
  select: words("seq event_id raw_sha256 type api_version event_created_at received_at secret_id"),
  withheld: ["raw"],
};

const eventWithoutBytes: ColumnRights = {
  select: words(
    `seq event_id raw_sha256 type api_version event_created_at received_at secret_id state attempts next_attempt_at
     reason resource_type resource_id deliveries settled_at`,
  ),
  withheld: ["raw"],
};

/** Not `twin`, which an erasure sets. */
const newStates = words(
  "resource id source_updated_at content_hash observed_at cause replaced_text absent_fields data",
);

/** Not with the heal that overruled it: `mirror.overrule` records that. */
const newUnbelieved = words("resource id source_updated_at content_hash observed_at cause data");

/** Under the receiver: which secret was used last is noted. */
const readAndNoteUse: ColumnRights = { all: "r", update: ["last_used_at"] };

/**
 * The mirror without the columns that an erasure redacts, but for `data` and `inline`, the objects as the service shows
 * them: reports and questions about fields without a column read these. So it keeps a tool from showing people by
 * accident; who looks for them in `data` finds some.
 */
const impersonal = {
  orders: {
    select: words(
      `id order_number customer_id status subtotal discount_amount total currency failure_code subscription_id
       subscription_cycle payment_method_id card_brand coupon_code created_at updated_at data version
       source_updated_at content_hash deleted_at attempt_count next_retry_at dunning_version items_version last_cause
       retry_due_at awaits`,
    ),
    withheld: words("description failure_reason card_last_four items"),
  },
  transactions: {
    select: words(
      `id type status amount currency customer_id order_id failure_code processor_transaction_id attempt_count
       payment_method_id card_brand created_at updated_at data version source_updated_at content_hash deleted_at inline
       inline_version last_cause`,
    ),
    withheld: words("failure_reason card_last_four"),
  },
  subscriptions: {
    select: words(
      `id customer_id plan_id status amount currency current_period_start current_period_end current_billing_cycle
       total_billing_cycles next_billing_date start_date end_date canceled_at payment_method_id card_brand created_at
       updated_at data version source_updated_at content_hash deleted_at attempt_count next_retry_at detail_version
       last_cause`,
    ),
    withheld: words("card_last_four failure_reason"),
  },
  customers: {
    select: words(
      `id default_payment_method_id created_at updated_at deleted version source_updated_at content_hash absent_version
       deleted_at last_cause`,
    ),
    withheld: words("email first_name last_name phone company data"),
  },
} satisfies Record<string, ColumnRights>;

/**
 * Every table of the migrated schema, with its partitions; a test compares. What a merchant's own migrations make is
 * kept by a backup, and no role may use it.
 */
export const tableDecisions: Readonly<Record<string, TableDecision>> = {
  // Every process asks at its start whether the schema is its own.
  "public.tallyhook_migrations": {
    backup: "keep",
    receiver: "r",
    worker: "r",
    reports: "r",
    dashboard: "r",
  },
  "public.tallyhook_schema_objects": {
    backup: "keep",
    receiver: "r",
    worker: "r",
    reports: "r",
    dashboard: "r",
  },
  "public.tallyhook_schema_texts": {
    backup: "keep",
    receiver: "r",
    worker: "r",
    reports: "r",
    dashboard: "r",
  },

  // The service has its 2xx and does not send again.
  "inbox.receipts": {
    backup: "keep",
    receiver: "a",
    // The bytes are masked, and pruned when they are old.
    worker: { all: "rd", update: ["raw"] },
    reports: receiptWithoutBytes,
    dashboard: "r",
    bi: receiptWithoutBytes,
  },
  "inbox.progress": {
    backup: "keep",
    // To say in its readiness that events wait for a lock.
    receiver: {
      all: "a",
      select: ["state", "reason"],
      withheld: [
        "arrived_at",
        "attempts",
        "event_at",
        "event_type",
        "next_attempt_at",
        "object_known_at",
        "resource_id",
        "resource_type",
        "seq",
        "settled_at",
      ],
    },
    worker: "rwd",
    reports: "r",
    // To replay one, and to show what that would do: it is applied and taken back.
    dashboard: "rw",
    bi: "r",
  },
  "inbox.seen": { backup: "keep", receiver: "arw", worker: "rd", bi: "r" },
  "inbox.dropped": { backup: "keep", worker: "arw", reports: "r", dashboard: "r", bi: "r" },
  "inbox.fetches": { backup: "keep_though_rebuildable", worker: "arwd", dashboard: "arw", bi: "r" },
  // A restored deployment starts every task by itself.
  "inbox.tasks": { backup: "leave", worker: "arw" },

  // No read shows what only events carry (an order's dunning), nor when a state was learned, on which reports as of a
  // time rest. Nobody but the owner may change history: the setting by which an erasure passes its trigger is no secret.
  "mirror.versions": {
    backup: "keep",
    worker: { all: "r", insert: newStates },
    reports: "r",
    dashboard: { all: "r", insert: newStates },
    bi: "r",
  },
  "mirror.unbelieved": {
    backup: "keep",
    worker: { all: "r", insert: newUnbelieved },
    dashboard: { all: "r", insert: newUnbelieved },
  },
  "mirror.misdated": { backup: "keep", worker: "arwd", dashboard: "arwd" },
  "mirror.heals": { backup: "keep", worker: "ar", dashboard: "ar" },
  "mirror.orders": {
    backup: "keep_though_rebuildable",
    worker: "arw",
    reports: impersonal.orders,
    dashboard: "arw",
    bi: impersonal.orders,
  },
  "mirror.transactions": {
    backup: "keep_though_rebuildable",
    worker: "arw",
    reports: impersonal.transactions,
    dashboard: "arw",
    bi: impersonal.transactions,
  },
  "mirror.subscriptions": {
    backup: "keep_though_rebuildable",
    worker: "arw",
    reports: impersonal.subscriptions,
    dashboard: "arw",
    bi: impersonal.subscriptions,
  },
  "mirror.customers": {
    backup: "keep_though_rebuildable",
    worker: "arw",
    reports: impersonal.customers,
    dashboard: "arw",
    bi: impersonal.customers,
  },

  // Without them, the erased would come back. Whoever writes what a person may be named in asks them.
  "mirror.erasures": { backup: "keep", worker: "r", dashboard: "r" },
  "mirror.erasure_log": { backup: "keep" },
  "mirror.erasure_key": { backup: "keep", worker: "r", dashboard: "r" },
  "mirror.erased_contacts": { backup: "keep", worker: "r", dashboard: "r" },
  "mirror.backups": { backup: "keep", worker: "r", dashboard: "r" },
  "mirror.restores": { backup: "keep", worker: "rw", dashboard: "r" },

  "receiver.secrets": {
    backup: "keep",
    receiver: readAndNoteUse,
    // To retire one, and to encrypt it with another key.
    dashboard: { all: "ra", update: words("key_id ciphertext not_after retired_at") },
  },
  "receiver.answers_by_minute": { backup: "keep", receiver: "arw", worker: "rd", dashboard: "r" },
  // A receiver that the lost system had is expected here as well.
  "receiver.heartbeats": { backup: "keep", receiver: "arw", worker: "rd", dashboard: "r" },
  // Always empty: its inserts are rolled back.
  "receiver.probes": { backup: "leave", receiver: "a" },

  "reconcile.runs": { backup: "keep", worker: "arw", reports: "r", dashboard: "r", bi: "r" },
  // Triggers write what became of runs and findings: reports as of a time rest on it.
  "reconcile.run_states": { backup: "keep", worker: "r", reports: "r", dashboard: "r", bi: "r" },
  "reconcile.coverage": { backup: "keep", worker: "arw", reports: "r", dashboard: "r", bi: "r" },
  "reconcile.doubts": { backup: "keep", worker: "arwd", reports: "r", dashboard: "r", bi: "r" },
  // A person decides about a finding by functions that record it (src/parts/reconcile/findings/decide-finding.sql).
  "reconcile.findings": { backup: "keep", worker: "arw", reports: "r", dashboard: "r", bi: "r" },
  "reconcile.finding_versions": {
    backup: "keep",
    worker: "r",
    reports: "r",
    dashboard: "r",
    bi: "r",
  },
  "reconcile.daily_sums": { backup: "keep", worker: "arwd", reports: "r", dashboard: "r", bi: "r" },
  "reconcile.account": { backup: "keep", worker: "ard", dashboard: "r" },
  "reconcile.endpoints": { backup: "keep", worker: "r", dashboard: "arw" },
  "reconcile.endpoint_calls": {
    backup: "keep",
    worker: "r",
    dashboard: { all: "ra", update: words("settled_at outcome endpoint_id") },
  },
  "reconcile.run_orders": {
    backup: "keep",
    worker: { all: "r", update: words("outcome error ended_at") },
    dashboard: { all: "ra", update: words("outcome error ended_at") },
  },
  // A token never goes back.
  "reconcile.leases": { backup: "keep", worker: "arw", dashboard: "r" },
  // Of no use but to a run that is at work: it reads again what is not there.
  "reconcile.seen": { backup: "leave", worker: "ard" },
  // Processes of the lost system.
  "reconcile.order_takers": { backup: "leave", worker: "arwd", dashboard: "r" },

  "reports.currencies": { backup: "keep", worker: "r", reports: "r", dashboard: "r", bi: "r" },
  "reports.decline_groups": { backup: "keep", worker: "r", reports: "r", dashboard: "r", bi: "r" },
  "reports.network_thresholds": {
    backup: "keep",
    worker: "r",
    reports: "r",
    dashboard: "r",
    bi: "r",
  },

  // Who closes or prepares a month locks these tables, which takes the right to update: their triggers refuse updates.
  "reports.closes": { backup: "keep", worker: "r", reports: "arL", dashboard: "arL", bi: "r" },
  "reports.preparations": { backup: "keep", reports: "arL", dashboard: "arL" },
  // Its triggers write it.
  "reports.closings": { backup: "keep" },

  "reports.closed_reports": {
    backup: "keep",
    worker: "r",
    reports: "ar",
    dashboard: "ar",
    bi: "r",
  },
  "reports.closed_rows": { backup: "keep", worker: "r", reports: "ar", dashboard: "ar", bi: "r" },
  "reports.closed_movements": {
    backup: "keep",
    worker: "r",
    reports: "ar",
    dashboard: "ar",
    bi: "r",
  },
  "reports.closed_evidence": {
    backup: "keep",
    worker: "r",
    reports: "ar",
    dashboard: "ar",
    bi: "r",
  },
  "reports.preparation_ends": { backup: "keep", reports: "ar", dashboard: "ar" },
  "reports.mailings": { backup: "keep", worker: "arw" },

  // The dashboard writes alerts where a heal or a person ends or raises one.
  "alerts.alerts": { backup: "keep", worker: "arwd", dashboard: "arw", bi: "r" },
  "alerts.history": { backup: "keep", worker: "ard", dashboard: "ar", bi: "r" },
  "alerts.outbox": { backup: "keep", worker: "arwd", dashboard: "arw" },
  "alerts.digest_items": { backup: "keep", worker: "arwd", dashboard: "ard" },
  "alerts.storm_items": { backup: "keep", worker: "arwd", dashboard: "ard" },
  "alerts.seen_values": { backup: "keep", worker: "ar", dashboard: "ar" },
  "alerts.marks": { backup: "keep", worker: "arw", dashboard: "arw" },
  "alerts.event_hours": { backup: "keep", worker: "arwd" },
  "alerts.silences": { backup: "keep", worker: "arwd", dashboard: "arw" },
  // Workers of the lost system would be missed.
  "alerts.heartbeats": { backup: "leave", worker: "arwd", dashboard: "r" },

  "feed.changes": { backup: "keep", worker: "ard", dashboard: "ar" },
  "feed.facts": { backup: "keep", worker: "ar", dashboard: "ar" },
  "feed.consumers": { backup: "keep", worker: "arwd" },

  "dispatch.handlers": {
    backup: "keep",
    worker: "arwd",
    // To pause and to resume one.
    dashboard: { all: "r", update: words("paused_at paused_by pause_reason probe_at resumed_at") },
  },
  "dispatch.hosts": { backup: "leave", worker: "arwd", dashboard: "r" },
  "dispatch.counts": { backup: "keep", worker: "arwd", dashboard: "r" },
  "dispatch.runs": {
    backup: "keep",
    worker: "arwd",
    dashboard: {
      all: "rd",
      // To try one again, and to skip one: then it is the turn of the next.
      update: words("state attempts due_at claimed_until is_first"),
    },
  },

  "people.accounts": { backup: "keep", dashboard: "arw" },
  // Commands record who ran them.
  "people.audit": {
    backup: "keep",
    worker: "a",
    reports: "a",
    dashboard: "ra",
  },
  "people.cases": { backup: "keep", dashboard: "arw" },
  "people.notes": { backup: "keep", dashboard: "ar" },

  // Whoever has the file must not be signed in, and who was signed out since must not be signed in again.
  // The worker removes what is over, and reads no more than when that is.
  "people.sessions": {
    backup: "leave",
    worker: {
      all: "d",
      select: words("began_at last_seen_at"),
      withheld: words("token_hash id account_id account_version method address user_agent"),
    },
    // The only key that changes: the token of a session whose person was given other roles.
    dashboard: { all: "arwd", update: ["token_hash"] },
  },
  "people.sign_in_links": {
    backup: "leave",
    worker: { all: "d", select: ["expires_at"], withheld: words("token_hash account_id") },
    dashboard: "ard",
  },
  "people.attempts": {
    backup: "leave",
    worker: { all: "d", select: ["expire"], withheld: words("key points") },
    dashboard: "arwd",
  },
};

/** Views, and the partitions that are named in statements: a backup has no decision of its own for them. */
export const otherRights: Readonly<Record<string, Rights>> = {
  // A view reads with the rights of its owner.
  "inbox.events": { worker: "r", dashboard: "r", bi: eventWithoutBytes },
  "mirror.chargebacks": { worker: "r", reports: "r", dashboard: "r", bi: "r" },
  "mirror.chargeback_openings": { worker: "r", reports: "r", dashboard: "r", bi: "r" },
  "mirror.disputed_sales": { worker: "r", reports: "r", dashboard: "r", bi: "r" },
  // A default partition is never dropped: what is old in it is removed row by row.
  "inbox.receipts_default": { worker: "rd" },
  "inbox.progress_default": { worker: "rwd" },
  "inbox.seen_default": { worker: "rd" },
  "feed.changes_default": { worker: "rd" },
};

export const sequenceRights: Readonly<Record<string, Rights>> = {
  "inbox.event_numbers": { receiver: "U", worker: "rw", dashboard: "r" },
  "feed.change_numbers": { worker: "rwU", dashboard: "rU" },
};

/** Who calls the functions that have the rights of the owner of the tables. A trigger's is called by nobody. */
export const functionRights: Readonly<Record<string, readonly RoleName[]>> = {
  "inbox.make_partitions": ["worker"],
  "inbox.hold_partition": ["worker"],
  "inbox.drop_partitions": ["worker"],
  "inbox.make_week": ["worker"],
  "inbox.drop_week": ["worker"],
  "feed.make_partitions": ["worker"],
  "feed.drop_partitions": ["worker"],
  "mirror.overrule": ["worker", "dashboard"],
  "mirror.forget_unbelieved": ["worker"],
  "reconcile.lock_finding": ["worker", "dashboard"],
  "reconcile.acknowledge_finding": ["worker", "dashboard"],
  "reconcile.heal_findings": ["worker", "dashboard"],
  "reconcile.keep_finding": [],
  "reconcile.keep_run_state": [],
  "reports.refuse_addition": [],
  "reports.check_close": [],
  "people.require_act": [],
};

/** Tables whose rows a backup leaves out. */
export const leftTables: readonly string[] = Object.keys(tableDecisions).filter(
  (table) => tableDecisions[table]?.backup === "leave",
);

/** The schema of the job queue. */
export const queueSchema = "bullmq";
/** Who adds jobs or takes them. */
export const queueRoles: readonly RoleName[] = ["receiver", "worker", "dashboard"];

/** Schemas that a backup leaves out whole: the job queue's. Its jobs are wake-ups, and `migrate` makes its tables. */
export const leftSchemas: readonly string[] = [queueSchema];
