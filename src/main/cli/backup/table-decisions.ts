/**
 * What a backup does with a table.
 *
 * - `keep`: nobody else has it.
 * - `keep_though_rebuildable`: a reconciliation could read it from the service again. It is kept all the same: that takes
 *   hours, and to every reader of the feed each object would be new once more.
 * - `leave`: of no use after a restore, or harmful. The table comes back empty.
 */
export type TableDecision = "keep" | "keep_though_rebuildable" | "leave";

/**
 * Every table of the migrated schema, with its partitions; a test compares. What a merchant's own migrations make is
 * kept.
 */
export const tableDecisions: Readonly<Record<string, TableDecision>> = {
  "public.tallyhook_migrations": "keep",
  "public.tallyhook_schema_objects": "keep",
  "public.tallyhook_schema_texts": "keep",

  // The service has its 2xx and does not send again.
  "inbox.receipts": "keep",
  "inbox.progress": "keep",
  "inbox.seen": "keep",
  "inbox.dropped": "keep",
  "inbox.fetches": "keep_though_rebuildable",

  // No read shows what only events carry (an order's dunning), nor when a state was learned, on which reports as of a
  // time rest.
  "mirror.versions": "keep",
  "mirror.unbelieved": "keep",
  "mirror.heals": "keep",
  "mirror.orders": "keep_though_rebuildable",
  "mirror.transactions": "keep_though_rebuildable",
  "mirror.subscriptions": "keep_though_rebuildable",
  "mirror.customers": "keep_though_rebuildable",
  // Without them, the erased would come back.
  "mirror.erasures": "keep",
  "mirror.erasure_log": "keep",
  "mirror.erasure_key": "keep",
  "mirror.erased_contacts": "keep",
  "mirror.restores": "keep",

  "receiver.secrets": "keep",
  "receiver.answers_by_minute": "keep",
  // Always empty: its inserts are rolled back.
  "receiver.probes": "leave",

  "reconcile.runs": "keep",
  "reconcile.run_states": "keep",
  "reconcile.coverage": "keep",
  "reconcile.doubts": "keep",
  "reconcile.findings": "keep",
  "reconcile.finding_versions": "keep",
  "reconcile.daily_sums": "keep",
  "reconcile.account": "keep",
  "reconcile.endpoints": "keep",
  "reconcile.endpoint_calls": "keep",
  "reconcile.run_orders": "keep",
  // A token never goes back.
  "reconcile.leases": "keep",
  // Of no use but to a run that is at work: it reads again what is not there.
  "reconcile.seen": "leave",
  // Processes of the lost system.
  "reconcile.order_takers": "leave",

  "reports.currencies": "keep",
  "reports.decline_groups": "keep",
  "reports.network_thresholds": "keep",
  "reports.closes": "keep",
  "reports.closed_reports": "keep",
  "reports.closed_rows": "keep",
  "reports.closed_movements": "keep",
  "reports.closed_evidence": "keep",
  "reports.preparations": "keep",
  "reports.preparation_ends": "keep",
  "reports.mailings": "keep",

  "alerts.alerts": "keep",
  "alerts.history": "keep",
  "alerts.outbox": "keep",
  "alerts.digest_items": "keep",
  "alerts.storm_items": "keep",
  "alerts.seen_values": "keep",
  "alerts.marks": "keep",
  "alerts.event_hours": "keep",
  "alerts.silences": "keep",
  // Workers of the lost system would be missed.
  "alerts.heartbeats": "leave",

  "feed.changes": "keep",
  "feed.facts": "keep",
  "feed.consumers": "keep",

  "dispatch.handlers": "keep",
  "dispatch.counts": "keep",
  "dispatch.runs": "keep",

  "people.accounts": "keep",
  "people.audit": "keep",
  "people.cases": "keep",
  "people.notes": "keep",
  // Whoever has the file must not be signed in, and who was signed out since must not be signed in again.
  "people.sessions": "leave",
  "people.sign_in_links": "leave",
  "people.attempts": "leave",
};

/** Tables whose rows a backup leaves out. */
export const leftTables: readonly string[] = Object.keys(tableDecisions).filter(
  (table) => tableDecisions[table] === "leave",
);

/** Schemas that a backup leaves out whole: the job queue's. Its jobs are wake-ups, and `migrate` makes its tables. */
export const leftSchemas: readonly string[] = ["bullmq"];
