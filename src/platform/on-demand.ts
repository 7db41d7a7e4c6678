import { createRequire } from "node:module";

const require = createRequire(import.meta.url);

/**
 * Packages that take longer to load than most commands to do their work, each loaded at its first use. Synchronously,
 * since their callers are; a caller that can wait writes `once(() => import("…"))`.
 */
export const onDemand = {
  get knex() {
    return (require("knex") as typeof import("knex")).knex;
  },
  get pg() {
    return require("pg") as typeof import("pg");
  },
  get ioredis() {
    return require("ioredis") as typeof import("ioredis");
  },
  get bullmq() {
    return require("bullmq") as typeof import("bullmq");
  },
  get openTelemetry() {
    return require("@opentelemetry/api") as typeof import("@opentelemetry/api");
  },
  get pino() {
    return (require("pino") as typeof import("pino")).pino;
  },
  get promClient() {
    return require("prom-client") as typeof import("prom-client");
  },
  get undici() {
    return require("undici") as typeof import("undici");
  },
  get cronParser() {
    return require("cron-parser") as typeof import("cron-parser");
  },
};
