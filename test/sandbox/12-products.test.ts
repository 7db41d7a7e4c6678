import { expect, test } from "vitest";
import { testKey } from "../../src/parts/sandbox/engine/keys.ts";
import { type Called, type Json, aCustomer, anOrder, expectRefusal, productsOf } from "./harness.ts";
import { useSandbox } from "./support/use-sandbox.ts";

const sandbox = useSandbox();

const pricing = { amount: 500, currency: "usd" };

test("are stored, and changed field by field", async () => {
  const body = {
    name: "Kettle",
    description: "Boils water",
    pricing,
    requires_shipping: true,
    sku: "kettle_1-a",
    stock_status: "preorder",
    metadata: { a: "b" },
  };
  const product = await sandbox.ok("POST", "/v1/products", body);
  expect(product).toMatchObject({ ...body, active: true });
  const changed = await sandbox.ok("PATCH", `/v1/products/${product.id}`, { active: false });
  expect(changed).toEqual({ ...product, active: false, updated_at: changed.updated_at });
});

test("SKUs have a form and are unique", async () => {
  for (const sku of ["Kettle", "a b", "a.b", ""]) {
    const called = await sandbox.call("POST", "/v1/products", { name: "x", pricing, sku });
    expectRefusal(called, 400, "invalid_format", "sku");
  }
  await sandbox.ok("POST", "/v1/products", { name: "x", pricing, sku: "taken" });
  const again = await sandbox.call("POST", "/v1/products", { name: "y", pricing, sku: "taken" });
  expectRefusal(again, 409, "sku_already_exists", "sku");
});

test("deletion follows use; a price change leaves orders alone", async () => {
  const [planned, ...others] = await productsOf(sandbox);
  const inPlans = (await sandbox.ok("GET", "/v1/plans?limit=100")).data.flatMap((plan: Json) =>
    plan.products.map((product: Json) => product.id),
  );
  const used = [planned, ...others].find((product) => inPlans.includes(product.id));
  expectRefusal(await sandbox.call("DELETE", `/v1/products/${used.id}`), 400, "product_in_active_plans");

  const fresh = await sandbox.ok("POST", "/v1/products", { name: "fresh", pricing });
  const path = `/v1/products/${fresh.id}`;
  const customer = await aCustomer(sandbox);
  const items = [{ product_id: fresh.id, quantity: 1 }];
  const order = await anOrder(sandbox, customer, { items });
  await sandbox.ok("PATCH", path, { pricing: { amount: 900, currency: "usd" } });
  expect((await sandbox.ok("GET", `/v1/orders/${order.id}`)).total).toBe(500);
  await sandbox.ok("DELETE", path);
  expect((await sandbox.ok("GET", path)).active).toBe(false);
  const refused = await sandbox.call("POST", "/v1/orders", {
    customer_id: customer.id,
    payment_method_id: customer.default_payment_method_id,
    items,
  });
  expectRefusal(refused, 400, "invalid_value", "items.0.product_id");

  const unused = await sandbox.ok("POST", "/v1/products", { name: "unused", pricing });
  await sandbox.ok("DELETE", `/v1/products/${unused.id}`);
  expectRefusal(await sandbox.call("GET", `/v1/products/${unused.id}`), 404, "resource_not_found");
});

const bytesOf = (start: string, length = 64) =>
  Buffer.concat([Buffer.from(start, "latin1"), Buffer.alloc(Math.max(0, length - start.length))]);
const png = "\x89PNG\r\n\x1a\n";

/** Uploads bytes as they are, or as the file of a form. */
async function upload(product: Json, bytes: Buffer, form = false): Promise<Called> {
  const fields = new FormData();
  fields.append("note", "first");
  fields.append("image", new Blob([bytes]), "any.png");
  const response = await fetch(`${sandbox.url}/v1/products/${product.id}/images`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${testKey}`,
      "x-svc-idempotency-key": crypto.randomUUID(),
      ...(form ? {} : { "content-type": "application/octet-stream" }),
    },
    body: form ? fields : new Uint8Array(bytes),
  });
  return { status: response.status, body: await response.json(), headers: response.headers };
}

const freshProduct = () => sandbox.ok("POST", "/v1/products", { name: "x", pricing });

test("images are told by their content, appended, served and expanded", async () => {
  const product = await freshProduct();
  const types: string[] = [];
  for (const [i, start] of ["\xff\xd8\xff\xe0", png, "GIF89a", "GIF87a"].entries()) {
    const bytes = bytesOf(start);
    const called = await upload(product, bytes, i % 2 === 1);
    expect(called.status).toBe(201);
    expect(called.body).toMatchObject({ product_id: product.id, order: i });
    const served = await fetch(called.body.url);
    types.push(served.headers.get("content-type") ?? "");
    expect(Buffer.from(await served.arrayBuffer()).equals(bytes)).toBe(true);
  }
  expect(types).toEqual(["image/jpeg", "image/png", "image/gif", "image/gif"]);
  const shown = await sandbox.ok("GET", `/v1/products/${product.id}?expand=images`);
  expect(shown.images.map((image: Json) => image.order)).toEqual([0, 1, 2, 3]);
  expect(await sandbox.ok("GET", `/v1/products/${product.id}`)).not.toHaveProperty("images");
  const listed = await sandbox.ok("GET", "/v1/products?expand=images&limit=100");
  expect(listed.data.length).toBeGreaterThan(0);
  expect(listed.data.every((one: Json) => Array.isArray(one.images))).toBe(true);
});

test("other formats and more than 10 MB are refused, 10 MB are not", async () => {
  const product = await freshProduct();
  for (const start of ["RIFF....WEBP", "<svg xmlns='x'>", "%PDF-1.7", "BM", ""]) {
    expectRefusal(await upload(product, bytesOf(start)), 400, "invalid_format", "image");
  }
  const most = 10 * 1024 * 1024;
  expectRefusal(await upload(product, bytesOf(png, most + 1)), 400, "invalid_value", "image");
  expect((await upload(product, bytesOf(png, most), true)).status).toBe(201);
});

test("ten images at most; a removed one leaves no gap", async () => {
  const product = await freshProduct();
  const images: Json[] = [];
  for (let i = 0; i < 10; i++) images.push((await upload(product, bytesOf(png))).body);
  expectRefusal(await upload(product, bytesOf(png)), 400, "invalid_value", "image");
  const path = `/v1/products/${product.id}/images`;
  const gone = await sandbox.ok("DELETE", `${path}/${images[3].id}`);
  expect(gone).toMatchObject({ id: images[3].id, deleted: true });
  expectRefusal(await sandbox.call("DELETE", `${path}/${images[3].id}`), 404, "resource_not_found");
  const other = await freshProduct();
  const elsewhere = `/v1/products/${other.id}/images/${images[0].id}`;
  expectRefusal(await sandbox.call("DELETE", elsewhere), 404, "resource_not_found");
  const { images: left } = await sandbox.ok("GET", `/v1/products/${product.id}?expand=images`);
  expect(left.map((image: Json) => image.order)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);
});

test("images are put in the order of a list that names each once", async () => {
  const product = await freshProduct();
  const ids: string[] = [];
  for (let i = 0; i < 3; i++) ids.push((await upload(product, bytesOf(png))).body.id);
  const path = `/v1/products/${product.id}/images/reorder`;
  const image_ids = ids.toReversed();
  const { data } = await sandbox.ok("PATCH", path, { image_ids });
  expect(data.map((image: Json) => [image.id, image.order])).toEqual(image_ids.map((id, i) => [id, i]));
  expectRefusal(await sandbox.call("PATCH", path, {}), 400, "required_field", "image_ids");
  for (const wrong of [ids.slice(1), [...ids, ids[0]], [ids[0], ids[0], ids[1]]]) {
    expectRefusal(await sandbox.call("PATCH", path, { image_ids: wrong }), 400, "invalid_value", "image_ids");
  }
  const unknown = { image_ids: [...ids.slice(1), "nonsense"] };
  expectRefusal(await sandbox.call("PATCH", path, unknown), 404, "resource_not_found", "image_ids");
});

test("products are filtered by active, sorted and restricted to fields", async () => {
  const hidden = await freshProduct();
  await sandbox.ok("PATCH", `/v1/products/${hidden.id}`, { active: false });
  const list = async (query: string): Promise<Json[]> =>
    (await sandbox.ok("GET", `/v1/products?limit=100&${query}`)).data;
  expect((await list("active=false")).map(({ id }) => id)).toContain(hidden.id);
  expect((await list("active=true")).map(({ id }) => id)).not.toContain(hidden.id);
  const names = (await list("sort=name[asc]")).map(({ name }) => name as string);
  expect(names).toEqual(names.toSorted());
  const [restricted] = await list("fields[products]=name");
  expect(Object.keys(restricted).sort()).toEqual(["id", "name"]);
});

test("what is out of stock can be ordered", async () => {
  const product = await sandbox.ok("POST", "/v1/products", {
    name: "Sold out",
    pricing,
    stock_status: "out_of_stock",
  });
  const items = [{ product_id: product.id, quantity: 1 }];
  const order = await anOrder(sandbox, await aCustomer(sandbox), { items });
  expect(order.status).toBe("succeeded");
});
