import { type Command, Option } from "commander";
import { tallyhook } from "../../../platform/command-line.ts";
import { UsageError } from "../../../platform/errors.ts";
import { createLog } from "../../../platform/log.ts";
import { firstMerchant, gatewayKey, liveKey, testKey } from "../engine/keys.ts";
import { isHostname } from "../http/own-site.ts";
import { behaviourOf, testCards } from "../resources/payment-methods/test-cards.ts";
import type { CliContext } from "../../../app/cli/context.ts";
import { type Columns, tableText } from "../../../app/cli/table.ts";
import { untilSignal } from "../../../app/cli/until-signal.ts";

interface SandboxFlags {
  port?: string;
  host: string;
  allowHost: string[];
  seed: string;
  state?: string;
}

export function registerSandbox(program: Command, context: CliContext): void {
  const sandbox = program.command("sandbox");
  sandbox
    .command("cards")
    .description("list the test cards: tokens, numbers and what each does")
    .option("--json", "print JSON")
    .action(({ json }: { json?: true }) => listCards(context, json === true));
  sandbox
    .option("--port <number>", "the port, instead of SANDBOX_PORT; 0 picks a free one")
    .option("--host <address>", "the address to listen on", "127.0.0.1")
    .addOption(
      new Option("--allow-host <name>", "a host name that callers may use, such as a container's; may be repeated")
        .argParser((name: string, names: string[]) => [...names, hostname(name)])
        .default([], "none"),
    )
    .option("--seed <text>", "the same seed and calls give the same ids, amounts and events", "tallyhook")
    .option("--state <file>", "keep the state in this file (default: it is lost at the end)")
    .action(async (flags: SandboxFlags) => {
      const { config } = context.loaded();
      const log = createLog({ level: config.logLevel, name: "sandbox" });
      const stopped = untilSignal();
      // Loaded on demand: help and the list of cards need no server.
      const { startSandbox } = await import("../start-sandbox.ts");
      const running = await startSandbox({
        port: flags.port === undefined ? config.sandbox.port : portOf(flags.port),
        host: flags.host,
        allowHosts: flags.allowHost,
        seed: flags.seed,
        log,
        ...(flags.state === undefined ? {} : { stateFile: flags.state }),
      });
      context.stdout.write(welcome(running.url, flags.state));
      await stopped;
      await running.close();
    });
}

function listCards({ stdout }: CliContext, json: boolean): void {
  const rows = Object.entries(testCards).map(([token, card]) => ({
    token,
    number: card.number ?? null,
    brand: card.brand,
    last4: card.last4,
    does: behaviourOf(card),
  }));
  if (json) {
    stdout.write(`${JSON.stringify(rows)}\n`);
    return;
  }
  const columns: Columns<(typeof rows)[number]> = {
    token: ({ token }) => token,
    number: ({ number, last4 }) => number ?? `… ${last4}`,
    brand: ({ brand }) => brand,
    "what it does": ({ does }) => does,
  };
  stdout.write(tableText(columns, rows));
}

function portOf(text: string): number {
  const port = Number(text);
  if (!/^\d{1,5}$/.test(text) || port > 65_535) {
    throw new UsageError(`--port must be a number from 0 to 65535, not ${JSON.stringify(text)}.`);
  }
  return port;
}

function hostname(text: string): string {
  if (isHostname(text)) return text;
  throw new UsageError(`--allow-host must be a host name without scheme and port, not ${JSON.stringify(text)}.`);
}

/** A newcomer's first lines: the address, the keys, and one line for each first step. */
function welcome(url: string, stateFile: string | undefined): string {
  const json = "-H 'content-type: application/json'";
  const api = `-H 'authorization: Bearer ${testKey}' ${json}`;
  const once = `-H "x-svc-idempotency-key: $(node -p 'crypto.randomUUID()')"`;
  const kept = stateFile === undefined ? "nothing is kept" : `kept in ${stateFile}`;
  return `The sandbox answers at ${url} (Ctrl-C stops it; ${kept}).
Keys: ${testKey} (test), ${liveKey} (live). Gateway: ${gatewayKey(firstMerchant, "test")}
Documentation: ${url}/docs, controls: ${url}/_sandbox, tutorial: docs/sandbox.md
Test cards: ${tallyhook("sandbox cards")}

A customer with a test card:
  curl ${url}/v1/customers ${api} -d '{"email":"ada@example.test","svc_gateway_customer_vault_id":"card_visa"}'
What can be sold, and subscribed to:
  curl '${url}/v1/products?limit=3' ${api}
  curl '${url}/v1/plans?limit=3' ${api}
An order, and a refund of it (ids from the answers above):
  curl ${url}/v1/orders ${api} ${once} -d '{"customer_id":"…","payment_method_id":"…","items":[{"product_id":"…","quantity":1}]}'
  curl ${url}/v1/orders/…/refund ${api} ${once} -d '{}'
A subscription:
  curl ${url}/v1/subscriptions ${api} ${once} -d '{"customer_id":"…","plan_id":"…","payment_method_id":"…","billing_cycle":{"interval":"month","interval_count":1}}'
Where to send webhooks:
  curl ${url}/v1/webhook_endpoints ${api} ${once} -d '{"url":"http://127.0.0.1:3000/webhooks","enabled_events":["*"]}'
A month of traffic, the clock, and what is there now:
  curl ${url}/_sandbox/traffic ${json} -d '{"orders":50,"subscriptions":10}'
  curl ${url}/_sandbox/clock ${json} -d '{"advance_seconds":86400}'
  curl ${url}/_sandbox
`;
}
