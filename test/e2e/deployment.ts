import { freePort } from "../support/free-port.ts";
import { type Program, runTallyhook } from "./program.ts";

export const webhookSecret = "whsec_of_the_tests_end_to_end";
const encryptionKey = "0123456789abcdef".repeat(4);

/** A receiver and workers as in production: processes of their own against given servers. */
export interface Deployment {
  /** Where events are posted. */
  readonly webhooksUrl: string;
  readonly readyUrl: string;
  readonly environment: Readonly<Record<string, string>>;
  /** Starts the receiver; resolves when it is ready. */
  startReceiver(): Promise<Program>;
  /** Starts a worker; resolves when it says that it runs. */
  startWorker(): Promise<Program>;
}

export async function layOutDeployment(servers: {
  databaseUrl: string;
  /** Past the pooler that `databaseUrl` goes through. */
  databaseDirectUrl?: string;
  redisUrl?: string;
  /** The entry of another version of the program. */
  program?: string;
}): Promise<Deployment> {
  const port = await freePort();
  const origin = `http://127.0.0.1:${port}`;
  const environment: Record<string, string> = {
    DATABASE_URL: servers.databaseUrl,
    SVC_WEBHOOK_SECRETS: webhookSecret,
    TALLYHOOK_ENCRYPTION_KEY: encryptionKey,
    HOST: "127.0.0.1",
    PORT: String(port),
    ADMIN_PORT: "0",
    ...(servers.databaseDirectUrl === undefined ? {} : { DATABASE_DIRECT_URL: servers.databaseDirectUrl }),
    ...(servers.redisUrl === undefined ? {} : { REDIS_URL: servers.redisUrl }),
  };
  return {
    webhooksUrl: `${origin}/webhooks`,
    readyUrl: `${origin}/readyz`,
    environment,
    async startReceiver() {
      const receiver = runTallyhook(["receiver"], environment, undefined, servers.program);
      await receiver.printed("the receiver listens");
      return receiver;
    },
    async startWorker() {
      const worker = runTallyhook(["worker"], environment, undefined, servers.program);
      await worker.printed("the worker runs");
      return worker;
    },
  };
}
