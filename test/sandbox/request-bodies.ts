import { type Json, type TestSandbox, aCustomer, aPlan, aSubscription, anOrder, productsOf } from "./harness.ts";

export interface GoodRequest {
  /** Of the endpoint's declaration. */
  name: string;
  method: string;
  path: string;
  body: Record<string, unknown>;
}

const address = {
  first_name: "Ada",
  last_name: "Lovelace",
  address_line1: "1 Main Street",
  address_line2: "Floor 2",
  city: "Boston",
  state: "MA",
  postal_code: "02108",
  country: "US",
  phone: "+15550001111",
};

/** A request with every field filled in, for each endpoint that takes a JSON body. */
export async function goodRequests(sandbox: TestSandbox): Promise<GoodRequest[]> {
  const customer = await aCustomer(sandbox);
  const second = await sandbox.ok("POST", `/v1/customers/${customer.id}/payment_methods`, {
    billing_id: "card_amex",
  });
  const order = await anOrder(sandbox, customer);
  const subscription = await aSubscription(sandbox, customer);
  const plan = await aPlan(sandbox, "box-monthly-usd");
  const [product] = await productsOf(sandbox);
  const [role] = (await sandbox.ok("GET", "/v1/roles")).data;
  const coupon = await sandbox.ok("POST", "/v1/coupons", {
    name: "Ten",
    percentage: 10,
    duration: "once",
  });
  const endpoint = await sandbox.ok("POST", "/v1/webhook_endpoints", {
    url: "https://example.test/webhooks",
    enabled_events: ["account.*"],
  });
  const person = {
    email: "new@example.test",
    first_name: "Ada",
    last_name: "Lovelace",
    phone: "+15559990000",
    company: "Engines",
    shipping_address: { ...address, full_name: "Ada Lovelace" },
    metadata: { a: "b" },
    svc_gateway_customer_vault_id: "card_visa",
  };
  const goods = {
    name: "Kettle",
    description: "Boils",
    pricing: { amount: 100, currency: "usd" },
    requires_shipping: true,
    sku: "kettle",
    stock_status: "in_stock",
    metadata: { a: "b" },
  };
  const parties = { customer_id: customer.id, payment_method_id: second.id };
  const cycle = { interval: "month", interval_count: 1, anchor_day: 31 };
  const terms = {
    name: "Fifteen",
    description: "Off",
    percentage: 15,
    max_discount_amount: 500,
    currency: "usd",
    duration: "repeating",
    duration_in_cycles: 2,
    first_time_customer_only: false,
    max_redemptions_per_code: 1,
    max_redemptions: 2,
    max_redemptions_per_customer: 1,
    minimum_amount: 10,
    starts_at: "2030-01-01T00:00:00Z",
    expires_at: "2031-01-01T00:00:00Z",
    product_scope: "specific",
    plan_scope: "none",
    product_ids: [product.id],
    plan_ids: [],
  };
  const at = `/v1/customers/${customer.id}`;
  const request = (name: string, method: string, path: string, body: Json): GoodRequest => ({
    name,
    method,
    path,
    body,
  });
  return [
    request("createCustomer", "POST", "/v1/customers", person),
    request("updateCustomer", "PATCH", at, person),
    request("addPaymentMethod", "POST", `${at}/payment_methods`, {
      billing_id: "card_visa",
      billing_details: { name: "Ada", address },
      set_as_default: true,
      update_subscriptions: true,
    }),
    request("deletePaymentMethod", "DELETE", `${at}/payment_methods/${second.id}`, {
      replacement_payment_method_id: customer.default_payment_method_id,
    }),
    request("createProduct", "POST", "/v1/products", goods),
    request("updateProduct", "PATCH", `/v1/products/${product.id}`, { ...goods, active: true }),
    request("reorderProductImages", "PATCH", `/v1/products/${product.id}/images/reorder`, {
      image_ids: [],
    }),
    request("createOrder", "POST", "/v1/orders", {
      ...parties,
      items: [{ product_id: product.id, quantity: 1 }],
      currency: "usd",
      description: "Tea",
      shipping_address: address,
      metadata: { a: "b" },
    }),
    request("refundOrder", "POST", `/v1/orders/${order.id}/refund`, { amount: 1 }),
    request("createSubscription", "POST", "/v1/subscriptions", {
      ...parties,
      plan_id: plan.id,
      billing_cycle: cycle,
      end_date: "2099-01-01",
      billing_cycles: 3,
      shipping_address: address,
      shipping_option_id: "standard",
    }),
    request("updateSubscription", "PATCH", `/v1/subscriptions/${subscription.id}`, {
      payment_method_id: second.id,
      shipping_address: address,
      shipping_option_id: "standard",
      billing_cycle: cycle,
    }),
    request("createCoupon", "POST", "/v1/coupons", {
      ...terms,
      codes: { count: 2, prefix: "TEA" },
    }),
    request("updateCoupon", "PATCH", `/v1/coupons/${coupon.id}`, { ...terms, active: true }),
    request("archiveCoupon", "POST", `/v1/coupons/${coupon.id}/archive`, { archived: true }),
    request("mintCouponCodes", "POST", `/v1/coupons/${coupon.id}/codes`, { count: 2 }),
    request("validateCoupon", "POST", "/v1/coupons/validate", {
      code: "NOTHING",
      customer_id: customer.id,
      product_ids: [product.id],
      cart_amount: 100,
      currency: "usd",
    }),
    request("inviteTeamMember", "POST", "/v1/team_members", {
      first_name: "Grace",
      last_name: "Hopper",
      email: "grace@example.test",
      phone_number: "+15550002222",
      role_id: role.id,
    }),
    request("createWebhookEndpoint", "POST", "/v1/webhook_endpoints", {
      url: "https://example.test/other",
      description: "Mine",
      enabled_events: ["order.*"],
      api_version: "2025-09-01",
    }),
    request("updateWebhookEndpoint", "PATCH", `/v1/webhook_endpoints/${endpoint.id}`, {
      url: "https://example.test/third",
      description: "Mine",
      enabled_events: ["order.*"],
      status: "disabled",
      api_version: "2025-09-01",
    }),
    request("rotateWebhookSecret", "POST", `/v1/webhook_endpoints/${endpoint.id}/rotate_secret`, {
      grace_period_hours: 1,
    }),
    request("upgradeApiVersion", "POST", "/v1/account/api_version", { version: "2025-09-01" }),
  ];
}
