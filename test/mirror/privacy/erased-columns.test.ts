import { expect, test } from "vitest";
import { useTestDatabase } from "../../support/use-database.ts";

const database = useTestDatabase();

/**
 * Columns in which something about a person may stand. "customers erase" redacts each of them, and what arrives later
 * before it is written there; test/e2e/erasure.test.ts shows it, and test/main/cli/erased-texts.test.ts for what people
 * write. A column that you add here, add there.
 */
const redacted: Readonly<Record<string, string>> = {
  "alerts.alerts": "facts acknowledged_note",
  "alerts.history": "detail",
  "alerts.outbox": "message",
  "alerts.silences": "reason",
  "dispatch.handlers": "pause_reason",
  "inbox.receipts": "raw",
  "mirror.customers": "email first_name last_name phone company data",
  "mirror.erasure_log": "reason",
  "mirror.heals": "reason",
  "mirror.orders": "description failure_reason card_last_four data items",
  "mirror.subscriptions": "failure_reason card_last_four data",
  "mirror.transactions": "failure_reason card_last_four data inline",
  "mirror.unbelieved": "data",
  "mirror.versions": "data",
  "people.notes": "text",
  "receiver.secrets": "note",
  "reconcile.finding_versions": "content",
  "reconcile.findings": "differences evidence history ack_note",
  "reports.preparations": "reason",
};

/**
 * Columns that hold ids, codes, hashes, names of our own, or what staff said about themselves and not about a customer.
 * Columns of numbers, times and booleans need no entry.
 */
const impersonal: Readonly<Record<string, string>> = {
  "alerts.alerts": `key rule severity state stage order_id subscription_id transaction_id customer_id currency
    acknowledged_by found_by`,
  "alerts.digest_items": "channel stage",
  "alerts.heartbeats": "name",
  "receiver.heartbeats": "name",
  "alerts.history": "change stage found_by",
  "alerts.marks": "name value",
  "alerts.outbox": "channel stage action state last_error",
  "alerts.silences": "rule key up_to_severity began_by ended_by",
  "alerts.storm_items": "channel stage told_how",
  // Statuses, codes, currencies, and names of fields: words of the interface.
  "alerts.seen_values": "kind value",
  "dispatch.counts": "handler",
  "dispatch.handlers": "name source paused_by",
  // A cause by the program or the import of a file, not by what it was given.
  "dispatch.hosts": "supervisor files reason",
  // An error's name, and a change, which names nobody.
  "dispatch.runs": "handler resource id kind change state error",
  "feed.changes": `resource id kind from_status to_status transaction_id currency state_group state_hash cause`,
  "feed.consumers": "name",
  "feed.facts": "resource id kind subject",
  "inbox.fetches": "resource id reason last_error",
  "inbox.progress": "state reason resource_type resource_id event_type",
  "inbox.receipts": "event_id raw_sha256 type api_version secret_id",
  "inbox.tasks": "name",
  "mirror.customers": "id default_payment_method_id version content_hash absent_version last_cause",
  // Keyed hashes.
  "mirror.erased_contacts": "hash customer_id",
  "mirror.erasure_key": "key",
  "mirror.erasure_log": "customer_id erased_by counts",
  "mirror.erasures": "customer_id",
  "mirror.heals": "resource id healed_by before_sha256 after_sha256 changed_columns",
  "mirror.misdated": "resource id currency",
  "mirror.orders": `id awaits order_number customer_id status currency failure_code subscription_id payment_method_id
    card_brand coupon_code version content_hash dunning_version items_version last_cause`,
  // Staff: who restored the database.
  "mirror.restores": "restored_by",
  "mirror.subscriptions": `id customer_id plan_id status currency payment_method_id card_brand version content_hash
    detail_version last_cause`,
  "mirror.transactions": `id type status currency customer_id order_id failure_code processor_transaction_id
    payment_method_id card_brand version content_hash inline_version last_cause`,
  "mirror.unbelieved": "resource id content_hash cause",
  "mirror.versions": "resource id content_hash cause absent_fields",
  // Staff's own addresses. Acts hold ids, and no personal data but that of who acts.
  "people.accounts": "email roles password_hash totp_key_id totp_ciphertext issuer subject",
  "people.attempts": "key",
  "people.audit": "actor via address action subject_kind subject_id before after login",
  "people.cases": "subject_kind subject_id",
  "people.notes": "subject_kind subject_id",
  "people.sessions": "token_hash method address user_agent",
  "people.sign_in_links": "token_hash",
  "public.tallyhook_migrations": "name needs",
  "public.tallyhook_schema_objects": "owner kind name file file_sha256 sha256",
  "public.tallyhook_schema_texts": "file file_sha256",
  "receiver.answers_by_minute": "reason",
  "receiver.secrets": "id ciphertext key_id",
  // A note quotes the service's answer to a list, of which no part is of one person.
  "reconcile.account": "id",
  "reconcile.coverage": "step resource path filter direction reason state checkpoint tally note",
  "reconcile.daily_sums": "currency type status",
  "reconcile.doubts": "resource id why state outcome",
  "reconcile.endpoint_calls": "kind endpoint_id body outcome",
  "reconcile.endpoints": "id url secret_id",
  "reconcile.findings": "key class identity severity resource object_id currency state cause ack_by",
  "reconcile.run_states": "state",
  "reconcile.leases": "name host process",
  "reconcile.order_takers": "host",
  "reconcile.run_orders": "run_key kind ordered_by outcome error",
  "reconcile.runs": "run_key kind state totals error",
  "reconcile.seen": "resource id",
  // Frozen and hashed: reports have ids, codes and amounts only, so that an erasure needs not touch a closed month.
  "reports.closed_evidence": "kind content",
  "reports.closed_movements": "movement kind object_id order_id currency",
  "reports.closed_reports": "report columns about sha256",
  "reports.closed_rows": "report cells",
  // The reason is under the seal: staff is told to name nobody, and an erasure lists the months where they did.
  "reports.closes": `time_zone verdict reason sha256 sha256_covers closed_by prepared_by
    previous_sha256 manifest`,
  "reports.currencies": "code",
  // Staff, and hashes and sums of reports.
  "reports.preparation_ends": "ended_by how",
  "reports.preparations": "time_zone prepared_by verdict accounts reports booked movements_mark",
  "reports.decline_groups": "code code_group",
  "reports.mailings": "key message_id state error",
  "reports.network_thresholds": "brand programme basis region min_amount_currency",
};

const columnsOf = (lists: Readonly<Record<string, string>>): string[] =>
  Object.entries(lists).flatMap(([table, columns]) => columns.split(/\s+/).map((column) => `${table}.${column}`));

test("every column that can hold a text is redacted by an erasure, or cannot tell who somebody is", async () => {
  const { rows } = await database.db.raw<{ rows: { name: string }[] }>(
    `select format('%s.%s.%s', table_schema, table_name, column_name) as name
     from information_schema.columns join information_schema.tables using (table_schema, table_name)
     where table_type = 'BASE TABLE' and table_schema not in ('pg_catalog', 'information_schema')
       and not (select relispartition from pg_class where oid = format('%I.%I', table_schema, table_name)::regclass)
       and data_type not in ('bigint', 'integer', 'smallint', 'numeric', 'double precision', 'real', 'boolean', 'date',
                             'timestamp with time zone', 'timestamp without time zone', 'interval', 'uuid')`,
  );
  const there = rows.map(({ name }) => name).toSorted();
  const known = [...columnsOf(redacted), ...columnsOf(impersonal)].toSorted();
  expect(known).toEqual([...new Set(known)]);
  expect(there).toEqual(known);
});
