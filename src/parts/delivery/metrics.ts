import {
  type MetricReading,
  ageSeconds,
  byName,
  countedTo,
  metric,
  names,
  namesAtMost,
  reading,
} from "../../app/metrics/metric.ts";

export const deliveryReadings: readonly MetricReading[] = [
  reading(
    "feed",
    async ({ db }) => {
      const { listConsumers } = await import("./consumers.ts");
      const { handlerOf } = await import("./dispatch/feed-place.ts");
      // Handlers have metrics of their own.
      return (await listConsumers(db)).filter(({ name }) => handlerOf(name) === null);
    },
    [
      [
        metric(
          "tallyhook_feed_consumer_unread_age_seconds",
          "Age of the oldest change that a consumer of the feed has not read; 0 where there is none.",
          { labels: { consumer: names }, alerts: ["TallyhookFeedConsumerBehind"] },
        ),
        (consumers, { clock }) =>
          consumers
            .toSorted(byName)
            .slice(0, namesAtMost)
            .map(({ name, unreadSince }) => ({
              labels: { consumer: name },
              value: ageSeconds(clock.now(), unreadSince),
            })),
      ],
    ],
  ),
  reading(
    "handlers",
    async ({ db }) => {
      const { readHandlersHealth } = await import("./dispatch/handler-health.ts");
      return (await readHandlersHealth(db, { most: countedTo })).sort(byName).slice(0, namesAtMost);
    },
    [
      [
        metric(
          "tallyhook_handler_dead_changes",
          `Changes that failed at their last attempt, of a handler or a destination; counted up to ${countedTo.toLocaleString("en")}.`,
          { labels: { handler: names }, alerts: ["TallyhookHandlerDead"] },
        ),
        (all) => all.map(({ name, dead }) => ({ labels: { handler: name }, value: dead })),
      ],
      [
        metric(
          "tallyhook_handler_unread_age_seconds",
          "Age of the oldest change that a handler or a destination has not read; 0 where there is none.",
          { labels: { handler: names }, alerts: ["TallyhookHandlerBehind"] },
        ),
        (all, { clock }) =>
          all.map(({ name, unreadSince }) => ({
            labels: { handler: name },
            value: ageSeconds(clock.now(), unreadSince),
          })),
      ],
      [
        metric(
          "tallyhook_handler_postponed_total",
          "How often a handler has postponed a change by RetryLater, which does not count as an attempt.",
          { labels: { handler: names } },
        ),
        (all) => all.map(({ name, postponed: value }) => ({ labels: { handler: name }, value })),
      ],
      [
        metric("tallyhook_handler_paused", "1 where a handler or a destination is paused.", {
          labels: { handler: names },
        }),
        (all) => all.map(({ name, pausedBy }) => ({ labels: { handler: name }, value: pausedBy === null ? 0 : 1 })),
      ],
    ],
  ),
];
