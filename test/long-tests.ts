/**
 * The test files that take more than ten seconds each beside others: they start whole programs and stop them at the
 * worst moments, look at every page in a browser, or play months. With them are those of the benchmarks that take more
 * than five, since no process of a deployment runs what they test. `npm test` leaves them out and `npm run test:long`
 * runs them; a file that is asked for by its name runs in either.
 */
export const longTests = [
  "test/{limits,nullable-columns,parts}.test.ts",
  "test/alerts/{billing-month,dunning-timelines}.test.ts",
  "test/alerts/channels/{email,standard-output}.test.ts",
  "test/alerts/outbox/killed-senders.test.ts",
  "test/alerts/rules/absence.test.ts",
  "test/alerts/storms/{storm-lists,storms}.test.ts",
  "test/bench/{dashboard,endings,real-events,smoke}.test.ts",
  "test/dashboard/{access,attacks,close-month,downloads,endpoint,events,hostile-forms}.test.ts",
  "test/dashboard/{reconciliation,reports,sign-in}.test.ts",
  "test/dashboard/browser/*.test.ts",
  "test/deployment/{compose-processes,launcher,prometheus}.test.ts",
  "test/dispatch/kill.test.ts",
  "test/dispatch/host/supervise.test.ts",
  "test/docs/{command-walks,extend,finance}.test.ts",
  "test/e2e/*.test.ts",
  "test/feed/{psql-reader,stopped-consumer}.test.ts",
  "test/inbox/{partitions,standby-away}.test.ts",
  "test/main/{doors,reconciliation,retention,standard-output,supervised-handlers}.test.ts",
  "test/main/cli/{acting-person,alerts,close,customers,dashboard,endpoint,endpoint-crashes}.test.ts",
  "test/main/cli/{heal-misdated,reconcile,recorded-acts,report,secrets,users}.test.ts",
  "test/main/cli/roles/attacks.test.ts",
  "test/main/cli/backup/backup.test.ts",
  "test/main/cli/doctor/doctor.test.ts",
  "test/main/cli/upgrade/rehearse.test.ts",
  "test/main/golden/command-line.test.ts",
  "test/migrations/fork.test.ts",
  "test/mirror/any-order.test.ts",
  "test/mirror/privacy/erasure-as-of.test.ts",
  "test/package/packed.test.ts",
  "test/platform/{hostile-text,log-output,redaction}.test.ts",
  "test/platform/embedded/{embedded-postgres,places}.test.ts",
  "test/platform/postgres/{migrations,pool,session-settings}.test.ts",
  "test/platform/tracing/tracing.test.ts",
  "test/queue/{many-redis,outage}.test.ts",
  "test/receiver/{connection-limits,outage,readiness}.test.ts",
  "test/reconcile/{calls,changes-while-reading,found-when,heal,heal-object,kill,paused-run}.test.ts",
  "test/reconcile/{quirks,same-account,spoiled-rows,stale-reads}.test.ts",
  "test/reconcile/invariants/{check-invariants,invariants,sandbox-traffic}.test.ts",
  "test/reports/{as-of-for-ever,live-settlement,proved-as-of,service-sums,standby}.test.ts",
  "test/reports/zones-and-months.test.ts",
  "test/reports/close/{bundle,close-month,closed-history,prepare-month,seal}.test.ts",
  "test/sandbox/{01-hostile-requests,07-every-list,29-accounting,generated-client,state-file}.test.ts",
  "test/support/run-directory.test.ts",
  "test/worker/{hostile-values,isolated-alerts,start-worker}.test.ts",
];

/** Test files whose properties `npm test` tries with few cases, and `npm run test:long` with many (`support/rounds.ts`). */
export const longerTests = [
  "test/alerts/recurrences.test.ts",
  "test/dispatch/start-dispatch.test.ts",
  "test/feed/{consumers,recurrences}.test.ts",
  "test/migrations/released-versions.test.ts",
  "test/reconcile/refused-rows.test.ts",
  "test/reconcile/runs/run-lease.test.ts",
  "test/sandbox/oversize-bodies.test.ts",
  "test/trust/claims-of-proof.test.ts",
];
