const customer = "id of a customer";
const card = "id of one of the customer's payment methods";
const monthly = { interval: "month", interval_count: 1 };

/**
 * What the documentation shows as the body of a request, by the endpoint's name: with ids put in, the sandbox takes it. What a viewer would
 * make up from the schema has random e-mail addresses and currencies, which it does not.
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
