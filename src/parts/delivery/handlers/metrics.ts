import { type MetricReading, metric, reading } from "../../../app/metrics/metric.ts";

export const handlerReadings: readonly MetricReading[] = [
  reading(
    "hosts",
    async ({ db }) => (await import("../dispatch/handler-hosts.ts")).readDownHosts(db, { afterMinutes: 0 }),
    [
      [
        metric(
          "tallyhook_handler_files_down",
          "Files of handlers that no process runs, or that end their process again and again.",
        ),
        (hosts) => [{ value: new Set(hosts.flatMap(({ files }) => files)).size }],
      ],
    ],
  ),
];
