import { execFile } from "node:child_process";
import { mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { testKey } from "../../src/parts/sandbox/engine/keys.ts";
import { useSandbox } from "./support/use-sandbox.ts";

const sandbox = useSandbox();
const run = promisify(execFile);
const root = join(import.meta.dirname, "../..");
const modules = join(root, "node_modules");
let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "generated-client-"));
  await symlink(modules, join(directory, "node_modules"));
});
afterAll(() => rm(directory, { recursive: true }));

/** Written as a user of the generated types would; what must not compile is marked. */
const program = `
import createClient from "openapi-fetch";
import type { components, paths, webhooks } from "./service.js";

type Order = components["schemas"]["Order"];
type OrderFailed = webhooks["order.failed"]["post"]["requestBody"]["content"]["application/json"];
export const declined = (event: OrderFailed): string => \`\${event.type satisfies "order.failed"} \${event.data.object.order_number}\`;

const [baseUrl = "", key = ""] = process.argv.slice(2);
const client = createClient<paths>({
  baseUrl: \`\${baseUrl}/v1\`,
  headers: { authorization: \`Bearer \${key}\` },
  querySerializer: { array: { style: "form", explode: false } },
});
const once = () => ({ "X-SVC-Idempotency-Key": crypto.randomUUID() });
function must<T>({ data, error }: { data?: T; error?: components["schemas"]["Error"] }): T {
  if (data === undefined) throw new Error(error?.error.code);
  return data;
}

const customer = must(await client.POST("/customers", {
  body: { email: "typed@example.test", svc_gateway_customer_vault_id: "card_visa" },
}));
const products = must(await client.GET("/products", { params: { query: { limit: 1, sort: "-created_at" } } }));
const product_id = products.data[0]?.id ?? "";
const order: Order = must(await client.POST("/orders", {
  params: { header: once() },
  body: {
    customer_id: customer.id,
    payment_method_id: customer.default_payment_method_id ?? "",
    items: [{ product_id, quantity: 2 }],
  },
}));
const listed = must(await client.GET("/orders", {
  params: { query: { status: ["succeeded", "refunded"], expand: ["customer", "transactions"], limit: 5, "total[gte]": 1 } },
}));
const refused = await client.GET("/orders/{id}", { params: { path: { id: "nowhere" } } });

const isPaid = order.status === "succeeded";
// @ts-expect-error no order has this status
const isLost = order.status === "lost";
// @ts-expect-error the list expands no such relation
await client.GET("/orders", { params: { query: { expand: ["cycles"] } } });
// @ts-expect-error lists are not sorted by this
await client.GET("/plans", { params: { query: { sort: "-color" } } });
// @ts-expect-error a limit is a number
await client.GET("/plans", { params: { query: { limit: "5" } } });
// @ts-expect-error the key is required here
await client.POST("/orders", { body: { customer_id: "", payment_method_id: "", items: [] } });

console.log(JSON.stringify({
  isPaid,
  isLost,
  listed: listed.data.map(({ id, transactions }) => [id, transactions?.length]),
  order: order.id,
  refused: [refused.response.status, refused.error?.error.code],
  requestId: refused.error?.error.request_id === refused.response.headers.get("x-request-id"),
}));
`;

const compilerOptions = {
  strict: true,
  target: "es2022",
  lib: ["es2022", "dom"],
  module: "nodenext",
  types: ["node"],
  exactOptionalPropertyTypes: false,
  outDir: "out",
};

test("a client whose types openapi-typescript generates compiles, and runs against the sandbox", async () => {
  const document = await (await fetch(`${sandbox.url}/openapi.json`)).text();
  const write = (name: string, text: string) => writeFile(join(directory, name), text);
  await write("openapi.json", document);
  await write("package.json", JSON.stringify({ type: "module" }));
  await write("tsconfig.json", JSON.stringify({ compilerOptions, include: ["program.ts"] }));
  await write("program.ts", program);
  const node = (...args: string[]) =>
    run(process.execPath, args, { cwd: directory }).catch((error: unknown) => {
      // The compiler tells its errors on standard output.
      const { stdout } = error as { stdout: string };
      throw new Error(`${args.join(" ")}\n${stdout}`, { cause: error });
    });
  await node(
    "--import",
    join(import.meta.dirname, "compiler-api/register.js"),
    join(modules, "openapi-typescript/bin/cli.js"),
    "openapi.json",
    "-o",
    "service.d.ts",
  );
  await node(join(modules, "typescript/bin/tsc"), "-p", "tsconfig.json");
  const { stdout } = await node("out/program.js", sandbox.url, testKey);
  const result: unknown = JSON.parse(stdout);
  expect(result).toMatchObject({
    isPaid: true,
    isLost: false,
    refused: [404, "resource_not_found"],
    requestId: true,
  });
  const { listed, order } = result as { listed: unknown[]; order: string };
  expect(listed).toEqual([[order, 1]]);
});
