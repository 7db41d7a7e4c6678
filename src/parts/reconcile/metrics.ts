import { type MetricReading, byCurrency, currencies, metric, reading, sums } from "../../app/metrics/metric.ts";

export const reconcileReadings: readonly MetricReading[] = [
  reading(
    "proof",
    async ({ db, clock, serviceClock }) => {
      const { listProofs } = await import("./coverage/proof.ts");
      return listProofs(db, { now: serviceClock.now(), at: clock.now() });
    },
    [
      [
        metric(
          "tallyhook_reconcile_proved_until_timestamp_seconds",
          "Everything in this list that was created before was proved equal; absent where nothing is proved.",
          {
            labels: { list: ["order", "transaction", "subscription", "customer"] },
            alerts: ["TallyhookNotProved"],
          },
        ),
        (lists) =>
          lists.flatMap(({ resource, provedUntil }) =>
            provedUntil === null ? [] : [{ labels: { list: resource }, value: provedUntil.getTime() / 1_000 }],
          ),
      ],
    ],
  ),
  reading("findings", async ({ db }) => (await import("./findings/search-findings.ts")).countOpenFindings(db), [
    [
      metric("tallyhook_findings_open", "Findings that are neither healed nor acknowledged, by class.", {
        labels: { class: { atMost: 20 } },
        alerts: ["TallyhookFindingsOpen"],
      }),
      (open) => sums(open.map(({ class: kind, n }) => [{ class: kind }, n])),
    ],
    [
      metric(
        "tallyhook_findings_at_risk_minor",
        "Amount at risk of the same findings, in minor units; without a known currency: other, unknown.",
        { labels: { currency: currencies } },
      ),
      (open) => byCurrency(open.map(({ currency, amountAtRiskMinor }) => [currency, amountAtRiskMinor])),
    ],
  ]),
];
