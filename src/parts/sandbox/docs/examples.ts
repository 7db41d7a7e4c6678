import type { Log } from "../../../platform/log.ts";
import { bodyOf } from "../engine/answer.ts";
import { latestVersion } from "../engine/api-versions.ts";
import type { Transport } from "../engine/delivery/attempt.ts";
import { createState } from "../engine/state.ts";
import type { Mounted } from "../http/mount.ts";

/** Sends nothing. */
const noTransport: Transport = {
  post: () => Promise.resolve({ status: 200, error: null }),
  close: () => Promise.resolve(),
};

const png = Buffer.from("89504e470d0a1a0a0000000d49484452", "hex");

interface Answered {
  id: string;
  data: { id: string }[];
  default_payment_method_id: string;
}

/**
 * Example answers of every endpoint, by its name. A small shop is played through, always the same one, so that the
 * examples are real answers of the sandbox and never out of date.
 */
export async function exampleAnswers(endpoints: readonly Mounted[], log: Log): Promise<Record<string, unknown>> {
  const wallClock = { now: () => new Date("2026-01-15T09:30:00Z") };
  const deps = { wallClock, log, transport: noTransport, origin: () => "http://127.0.0.1:4010" };
  const state = createState(deps, "examples");
  const answers: Record<string, unknown> = {};

  async function call(name: string, params: object = {}, more: object = {}, query: object = {}) {
    const found = endpoints.find(({ endpoint }) => endpoint.name === name);
    if (found === undefined) throw new Error(`no endpoint ${name}`);
    const { endpoint, handle } = found;
    const request = {
      params: endpoint.params.parse(params),
      query: endpoint.query.parse(query),
      body: endpoint.body.parse({ ...exampleBodies[name], ...more }),
      resumes: null,
    };
    const answer = bodyOf(await handle(state.spaces.test, request, state));
    answers[name] = JSON.parse(JSON.stringify(answer));
    return answers[name] as Answered;
  }

  try {
    const limit = { limit: "1" };
    const list = (name: string, params = {}) => call(name, params, {}, limit);
    const listed = async (name: string) => (await list(name)).data[0]?.id;

    const customer = await call("createCustomer");
    const buyer = {
      customer_id: customer.id,
      payment_method_id: customer.default_payment_method_id,
    };
    const { id: cardId } = await call("addPaymentMethod", customer, { set_as_default: false });
    const replacement_payment_method_id = customer.default_payment_method_id;
    const removed = { id: customer.id, pm_id: cardId };
    await call("deletePaymentMethod", removed, { replacement_payment_method_id });
    await call("updateCustomer", customer);
    await call("getCustomer", customer, {}, { expand: "payment_methods" });
    await list("listCustomers");

    const product = await call("createProduct");
    const image = await call("addProductImage", product, { image: png });
    await call("reorderProductImages", product, { image_ids: [image.id] });
    await call("deleteProductImage", { id: product.id, imageId: image.id });
    await call("updateProduct", product);
    await call("getProduct", product);
    await list("listProducts");

    const items = [{ product_id: product.id, quantity: 2 }];
    const order = await call("createOrder", {}, { ...buyer, items });
    await call("refundOrder", order);
    await call("getOrder", order);
    await list("listOrders");
    const poor = await call(
      "createCustomer",
      {},
      {
        email: "bob@example.test",
        svc_gateway_customer_vault_id: "card_declined_once",
      },
    );
    const declined = await call(
      "createOrder",
      {},
      {
        customer_id: poor.id,
        payment_method_id: poor.default_payment_method_id,
        items,
      },
    );
    await call("retryOrder", declined);
    await call("getTransaction", { id: await listed("listTransactions") });
    await call("deleteCustomer", poor);

    const plan_id = await listed("listPlans");
    await call("getPlan", { id: plan_id });
    const subscription = await call("createSubscription", {}, { ...buyer, plan_id });
    await call("updateSubscription", subscription);
    await call("getSubscription", subscription, {}, { expand: "cycles" });
    await list("listSubscriptions");
    await call("cancelSubscription", subscription);

    const coupon = await call("createCoupon", {}, { kind: "generated", codes: { count: 2 } });
    await call("mintCouponCodes", coupon, { count: 1 });
    await list("listCouponCodes", coupon);
    await call("updateCoupon", coupon);
    await call("getCoupon", coupon);
    await list("listCoupons");
    await call("createCoupon");
    await call("validateCoupon", {}, { code: "SPRING10", cart_amount: 5000 });
    await call("archiveCoupon", coupon);
    await call("deleteCoupon", coupon);
    await call("deleteProduct", product);

    const role_id = (await call("listRoles")).data[0]?.id;
    await call("inviteTeamMember", {}, { role_id });
    await list("listTeamMembers");

    const endpoint = await call("createWebhookEndpoint");
    await call("testWebhookEndpoint", endpoint);
    await call("updateWebhookEndpoint", endpoint);
    await call("getWebhookEndpoint", endpoint);
    await list("listWebhookEndpoints");
    await call("rotateWebhookSecret", endpoint);
    await call("deleteWebhookEndpoint", endpoint);
    await call("getAccount");
    await call("upgradeApiVersion", {}, { version: latestVersion.version });
    return answers;
  } finally {
    state.close();
  }
}

const customer = "id of a customer";
const card = "id of one of the customer's payment methods";
const monthly = { interval: "month", interval_count: 1 };

/**
 * Example request bodies, by the endpoint's name: once ids are filled in, the sandbox accepts them. Bodies that a
 * viewer makes up from the schema have random e-mail addresses and currencies, which it refuses.
 */
export const exampleBodies: Readonly<Record<string, object>> = {
  createCustomer: {
    email: "ada@example.test",
    first_name: "Ada",
    last_name: "Lovelace",
    svc_gateway_customer_vault_id: "card_visa",
  },
  updateCustomer: { company: "Analytical Engines", phone: "+15550001111" },
  addPaymentMethod: { billing_id: "card_mastercard", set_as_default: true },
  deletePaymentMethod: { replacement_payment_method_id: card },
  createProduct: {
    name: "Teapot",
    pricing: { amount: 2900, currency: "usd" },
    requires_shipping: false,
    sku: "teapot-1",
  },
  updateProduct: { name: "Large teapot" },
  reorderProductImages: { image_ids: ["id of the image to come first"] },
  createOrder: {
    customer_id: customer,
    payment_method_id: card,
    items: [{ product_id: "id of a product", quantity: 2 }],
  },
  refundOrder: { amount: 100 },
  createSubscription: {
    customer_id: customer,
    plan_id: "id of a plan",
    payment_method_id: card,
    billing_cycle: monthly,
  },
  updateSubscription: { billing_cycle: { ...monthly, anchor_day: 15 } },
  createCoupon: { kind: "promo", name: "SPRING10", percentage: 10, duration: "once" },
  updateCoupon: { description: "For the spring sale" },
  archiveCoupon: { archived: true },
  mintCouponCodes: { count: 5 },
  inviteTeamMember: {
    first_name: "Grace",
    last_name: "Hopper",
    email: "grace@example.test",
    phone_number: "+15550002222",
    role_id: "id of a role",
  },
  createWebhookEndpoint: { url: "http://127.0.0.1:3000/webhooks", enabled_events: ["*"] },
  updateWebhookEndpoint: { status: "disabled" },
  rotateWebhookSecret: { grace_period_hours: 24 },
};
