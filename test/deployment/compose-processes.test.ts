import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import pg from "pg";
import { createDatabase } from "../../src/platform/postgres/pool.ts";
import { signatureScheme } from "../../src/core/contract/signature/signature-scheme.ts";
import { freePort } from "../support/free-port.ts";
import { redisAvailable, type RedisServer, startRedis } from "../support/redis.ts";
import { databaseUrl, withServer } from "../support/server-commands.ts";
import { createDatabaseSql, readCompose, readEnvExample, service } from "./compose-file.ts";
import { type Container, runContainer } from "./container.ts";

const webhookSecret = "whsec_of_the_deployment_test";
// Nothing listens there: neither a start nor a whole event may need the service.
const compose = readCompose(readEnvExample({ SVC_BASE_URL: "https://127.0.0.1:9" }));

const order = {
  id: "6f0c7c9e-0b8a-4a44-9d0e-0c4f4f3b7a11",
  order_number: "A1B2C3D4",
  customer_id: "0a4c2b52-6a4e-4b55-8a55-1f3f6a3d9a10",
  status: "succeeded",
  subtotal: 5_000,
  discount_amount: 0,
  total: 5_000,
  currency: "usd",
  created_at: "2026-03-01T10:00:00.000Z",
  updated_at: "2026-03-01T10:00:01.000Z",
};

/** The same database, for the role that owns it and bears its name. */
function roleUrl(databaseUrl: string, password: string): string {
  const url = new URL(databaseUrl);
  url.username = url.pathname.slice(1);
  url.password = encodeURIComponent(password);
  return url.href;
}

/** The statements of the postgres service's script as psql would send them, with names of this test's own. */
function createDatabaseStatements(name: string, password: string): string[] {
  const [setPassword = "", ...sql] = createDatabaseSql(compose).split("\n");
  expect(setPassword).toBe("\\set password `cat /run/secrets/database_password`");
  return sql
    .filter((line) => !line.startsWith("--"))
    .join("\n")
    .replaceAll(":'password'", pg.escapeLiteral(password))
    .replaceAll("tallyhook", name)
    .split(";")
    .filter((statement) => statement.trim() !== "");
}

describe.skipIf(!redisAvailable)("the services of docker-compose.yml as plain processes", () => {
  const databaseName = `${inject("templateDatabase")}_compose`;
  const databasePassword = "it's the role's password";
  const url = roleUrl(databaseUrl(inject("serverUrl"), databaseName), databasePassword);
  const secretValues: Record<string, string> = {
    database_password: databasePassword,
    database_url: url,
    svc_api_key: "svc_test_sk_0123456789",
    svc_webhook_secrets: webhookSecret,
    tallyhook_encryption_key: "0123456789abcdef".repeat(4),
  };
  const containers: Container[] = [];
  const image = inject("image");
  let secretsDir: string;
  /** Mounted as docker-compose.yml says, and empty. */
  let handlersDir: string;
  let redis: RedisServer;

  beforeAll(async () => {
    secretsDir = await mkdtemp(join(tmpdir(), "tallyhook-secrets-"));
    handlersDir = join(secretsDir, "handlers");
    await mkdir(handlersDir);
    redis = await startRedis({ appendOnly: true });
    await withServer(inject("serverUrl"), async (client) => {
      for (const statement of createDatabaseStatements(databaseName, databasePassword)) {
        await client.query(statement);
      }
    });
  });

  afterAll(async () => {
    await Promise.all(containers.map((container) => container.stop()));
    await redis.stop();
    await rm(secretsDir, { recursive: true, force: true });
  });

  /** Starts a service with the file's command and environment; only addresses become those of this machine. */
  const run = async (name: string, ports: { port: number; adminPort: number }): Promise<Container> => {
    const { environment = {}, secrets = [] } = service(compose, name);
    const directory = join(secretsDir, name);
    await mkdir(directory);
    for (const secret of secrets) await writeFile(join(directory, secret), secretValues[secret] ?? "");
    const inContainer = Object.entries(environment).map(([key, value]) => [
      key,
      value.replace("/run/secrets", directory).replace("/app/handlers", handlersDir),
    ]);
    const container = runContainer(service(compose, name), image, {
      ...(Object.fromEntries(inContainer) as Record<string, string>),
      NODE_ENV: "production",
      REDIS_URL: redis.url,
      HOST: "127.0.0.1",
      PORT: String(ports.port),
      ADMIN_PORT: String(ports.adminPort),
    });
    containers.push(container);
    return container;
  };

  const freePorts = async (): Promise<{ port: number; adminPort: number }> => ({
    port: await freePort(),
    adminPort: await freePort(),
  });

  const post = async (port: number): Promise<Response> => {
    const body = Buffer.from(
      JSON.stringify({
        id: "evt_of_the_deployment_test",
        type: "order.succeeded",
        created_at: order.updated_at,
        api_version: "2026-01-01",
        data: { object: order },
      }),
    );
    const signature = signatureScheme("svc").sign({
      body,
      secrets: [webhookSecret],
      at: new Date(),
      messageId: "evt_of_the_deployment_test",
    });
    return fetch(`http://127.0.0.1:${port}/webhooks`, {
      method: "POST",
      headers: { "content-type": "application/json", ...signature },
      body,
    });
  };

  test("log in as a role that owns the database and may do nothing else on the server", async () => {
    const { rows } = await withServer(url, (client) =>
      client.query(
        `select rolname = current_user and datdba = pg_roles.oid as owner, rolsuper, rolcreaterole, rolcreatedb,
                rolreplication, rolbypassrls, datlocprovider, pg_encoding_to_char(encoding) as encoding
         from pg_roles, pg_database where rolname = current_user and datname = current_database()`,
      ),
    );
    expect(rows).toEqual([
      {
        owner: true,
        rolsuper: false,
        rolcreaterole: false,
        rolcreatedb: false,
        rolreplication: false,
        rolbypassrls: false,
        datlocprovider: "b",
        encoding: "UTF8",
      },
    ]);
  });

  test("migrate, become healthy, mirror a signed webhook, and end cleanly when asked", async () => {
    const migrate = await run("migrate", await freePorts());
    expect(await migrate.exited, migrate.output()).toEqual({ code: 0, signal: null });

    const ports = await freePorts();
    const receiver = await run("receiver", ports);
    const worker = await run("worker", await freePorts());
    await Promise.all([receiver.healthy(), worker.healthy()]);

    const answer = await post(ports.port);
    expect([answer.status, await answer.json()]).toEqual([
      200,
      { received: true, id: "evt_of_the_deployment_test", duplicate: false },
    ]);
    expect(await (await post(ports.port)).json()).toMatchObject({ duplicate: true });

    const db = createDatabase({ url, poolMax: 1, applicationName: "tallyhook test" });
    try {
      await expect
        .poll(() => db("mirror.orders").select("id", "status", "total"), { timeout: 10_000 })
        .toEqual([{ id: order.id, status: "succeeded", total: "5000" }]);
    } finally {
      await db.destroy();
    }

    expect(await Promise.all([receiver.stop(), worker.stop()])).toEqual([
      { code: 0, signal: null },
      { code: 0, signal: null },
    ]);
    for (const { output } of [receiver, worker]) {
      expect(output()).not.toContain(webhookSecret);
      expect(output()).not.toMatch(/"level":"(?:error|fatal)"/);
    }
  });
});
