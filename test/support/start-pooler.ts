import type { TestProject } from "vitest/node";
import { startPgBouncer } from "./pgbouncer.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** A pooler in front of the run's server, by way of which tests reach their databases; null: directly. */
    poolerUrl: string | null;
  }
}

/** Starts PgBouncer in transaction mode in front of the run's server. It follows `global-setup.ts`. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const { serverUrl } = project.getProvidedContext();
  // All defaults except for sizes: clients meet other server connections all the time.
  const pooler = await startPgBouncer(serverUrl, "transaction", {
    ignore_startup_parameters: "",
    default_pool_size: 20,
    server_round_robin: 1,
  });
  project.provide("poolerUrl", pooler.url);
  return () => pooler.stop();
}
