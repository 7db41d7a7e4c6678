import { type ColumnRights, type DatabaseRights, words } from "./rights.ts";

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
 * them: reports and queries on fields without a column read these. It keeps a tool from showing personal data by
 * accident; a deliberate search in `data` finds some.
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

/** Tables of core and app. */
export const baseRights: DatabaseRights = {
  tables: {
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
      // Its readiness reports events that wait for a lock.
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
    // No read shows data that only events carry (an order's dunning), nor the recording time of a state, on which
    // reports as of a time rest. Only the owner may change history: the setting by which an erasure passes its trigger
    // is no secret.
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
    // Without them, erased people would come back. Code that writes texts which may name a person reads them.
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
    "reports.currencies": { backup: "keep", worker: "r", reports: "r", dashboard: "r", bi: "r" },
    "reports.decline_groups": { backup: "keep", worker: "r", reports: "r", dashboard: "r", bi: "r" },
    "reports.network_thresholds": {
      backup: "keep",
      worker: "r",
      reports: "r",
      dashboard: "r",
      bi: "r",
    },
    "feed.changes": { backup: "keep", worker: "ard", dashboard: "ar" },
    "feed.facts": { backup: "keep", worker: "ar", dashboard: "ar" },
    "people.accounts": { backup: "keep", dashboard: "arw" },
    // Commands record the person who ran them.
    "people.audit": {
      backup: "keep",
      worker: "a",
      reports: "a",
      dashboard: "ra",
    },
    "people.cases": { backup: "keep", dashboard: "arw" },
    "people.notes": { backup: "keep", dashboard: "ar" },
    // A holder of the file must not be signed in by it, and a session ended since must not come back. The worker
    // removes expired sessions, and reads only their end.
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
  },
  views: {
    // A view reads with the rights of its owner.
    "inbox.events": { worker: "r", dashboard: "r", bi: eventWithoutBytes },
    "mirror.chargebacks": { worker: "r", reports: "r", dashboard: "r", bi: "r" },
    "mirror.chargeback_openings": { worker: "r", reports: "r", dashboard: "r", bi: "r" },
    "mirror.disputed_sales": { worker: "r", reports: "r", dashboard: "r", bi: "r" },
    // A default partition is never dropped: its old rows are removed one by one.
    "inbox.receipts_default": { worker: "rd" },
    "inbox.progress_default": { worker: "rwd" },
    "inbox.seen_default": { worker: "rd" },
    "feed.changes_default": { worker: "rd" },
  },
  sequences: {
    "inbox.event_numbers": { receiver: "U", worker: "rw", dashboard: "r" },
    "feed.change_numbers": { worker: "rwU", dashboard: "rU" },
  },
  functions: {
    "inbox.make_partitions": ["worker"],
    "inbox.hold_partition": ["worker"],
    "inbox.drop_partitions": ["worker"],
    "inbox.make_week": ["worker"],
    "inbox.drop_week": ["worker"],
    "feed.make_partitions": ["worker"],
    "feed.drop_partitions": ["worker"],
    "mirror.overrule": ["worker", "dashboard"],
    "mirror.forget_unbelieved": ["worker"],
    "people.require_act": [],
  },
  given: [
    "feed.changes.seq",
    "inbox.fetches.due_at",
    "inbox.receipts.seq",
    "mirror.misdated.ordered_at",
    "receiver.heartbeats.beat_at",
  ],
};
