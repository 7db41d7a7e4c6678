/**
 * The peer: supabase's stripe sync engine behind node:http, used as in its README. It migrates its database before it
 * listens. Its settings are in PEER, as JSON. Its own defaults are the fastest: no API calls, no related objects, no
 * log.
 */
import { subscribe } from "node:diagnostics_channel";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { serve } from "./serve.ts";

export interface PeerSettings {
  /** The package with its dependencies. */
  directory: string;
  packageName: string;
  databaseUrl: string;
  poolMax: number;
  webhookSecret: string;
}

/** The package's exports, as far as they are used here. */
interface PeerPackage {
  StripeSync: new (config: {
    poolConfig: { connectionString: string; max: number };
    stripeSecretKey: string;
    stripeWebhookSecret: string;
  }) => { processWebhook(payload: Buffer, signature: string | undefined): Promise<void> };
  /** Logs its failure and resolves. */
  runMigrations(config: {
    databaseUrl: string;
    schema: string;
    logger: { info(): void; error(error: unknown): void };
  }): Promise<void>;
}

const settings = JSON.parse(process.env["PEER"] ?? "") as PeerSettings;
const { databaseUrl } = settings;
const { StripeSync, runMigrations } = createRequire(join(settings.directory, "package.json"))(
  settings.packageName,
) as PeerPackage;

let failure: unknown = null;
const logger = { info() {}, error: (error: unknown) => void (failure = error) };
await runMigrations({ databaseUrl, schema: "stripe", logger });
if (failure !== null) throw new Error("the peer's migrations failed", { cause: failure });
const sync = new StripeSync({
  poolConfig: { connectionString: databaseUrl, max: settings.poolMax },
  stripeSecretKey: "sk_test_none",
  stripeWebhookSecret: settings.webhookSecret,
});

// An event that needs an answer of Stripe is no fair load: the benchmark must not send any.
subscribe("http.client.request.start", () => {
  console.error("the peer called Stripe's API: the benchmark's events must not need that");
  process.exit(1);
});

const answer = JSON.stringify({ received: true });

serve(
  createServer((request, response) => {
    const reply = (status: number) => {
      response.writeHead(status, {
        "Content-Type": "application/json; charset=utf-8",
        "Content-Length": Buffer.byteLength(answer),
      });
      response.end(answer);
    };
    if (request.method !== "POST") return reply(200);
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const signature = request.headers["stripe-signature"];
      sync.processWebhook(Buffer.concat(chunks), typeof signature === "string" ? signature : undefined).then(
        () => reply(200),
        (error: unknown) => {
          console.error(error);
          reply(400);
        },
      );
    });
  }),
);
