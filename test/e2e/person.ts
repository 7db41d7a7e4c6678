type Wire = Record<string, unknown> & { id: string; created_at: string };

export interface Person {
  /** Each of them stands in one field, and nowhere else. */
  markers: Set<string>;
  mark(): string;
  email: string;
  phone: string;
  /** As the service shows them. A version later than the first is a minute younger, with other texts. */
  objects(version: number): Record<"customers" | "orders" | "subscriptions" | "transactions", Wire[]>;
  /** What events show: with what they embed, and with fields that the interface lacks. */
  events(version: number): { type: string; object: object }[];
  /** Events that name no customer, or are none at all. */
  strays(): (object | string)[];
}

const firstAt = Date.UTC(2025, 4, 10, 10);

const escaped = (text: string): string =>
  Array.from(text, (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, "0")}`).join("");

/** Somebody of whom every field that may tell something holds a text of its own. */
export function createPerson(name: string, digits: string): Person {
  const markers = new Set<string>();
  let marked = 0;
  const keep = (text: string): string => {
    markers.add(text);
    return text;
  };
  const mark = (): string => keep(`${name}Q${String((marked += 1)).padStart(3, "0")}z`);
  const number = (): number => Number(keep(`${digits}${String((marked += 1)).padStart(3, "0")}`));
  const email = keep(`${name}.mail@${name}-post.example`);
  const phone = keep(`+1${digits}000`);
  const id = (kind: string): string => `${kind}-of-${digits}`;

  const times = (version: number) => ({
    created_at: new Date(firstAt).toISOString(),
    updated_at: new Date(firstAt + version * 60_000).toISOString(),
  });
  /** Fields that the interface does not have. */
  const unknown = () => ({
    name: mark(),
    tax_id: mark(),
    ip_address: mark(),
    notes: [mark(), { deep: mark(), id: "n-1" }],
    cardholder_name: mark(),
    birth_year: number(),
    [mark()]: true,
    billing_address: { line1: mark(), geo: [number()] },
    billing_details: { address: mark() },
  });
  const metadata = () => ({ [mark()]: mark(), nested: { list: [mark(), number()] } });
  const address = () => ({
    id: id("address"),
    first_name: mark(),
    last_name: mark(),
    full_name: mark(),
    address_line1: mark(),
    address_line2: mark(),
    city: mark(),
    state: mark(),
    postal_code: mark(),
    country: "US",
    phone: mark(),
    company: mark(),
  });
  const card = () => ({
    id: id("card"),
    card_last_four: mark(),
    card_brand: "visa",
    holder: mark(),
  });
  const method = () => ({
    id: id("card"),
    type: "card",
    card: { last4: mark(), brand: "visa", exp: mark(), name: mark() },
    customer_id: id("customer"),
    is_default: true,
    created_at: times(0).created_at,
  });
  const coupon = () => ({
    id: "coupon-1",
    code: "SPRING",
    name: mark(),
    kind: "promo",
    amount: 200,
  });
  const processor = () => ({
    transaction_id: id("processor"),
    authorization_code: mark(),
    avs_result: "Y",
    cvv_result: "M",
    response_code: "100",
    response_text: mark(),
  });

  const customer = (version: number): Wire => ({
    id: id("customer"),
    email,
    first_name: mark(),
    last_name: mark(),
    phone,
    company: mark(),
    shipping_address: address(),
    metadata: metadata(),
    default_payment_method_id: id("card"),
    payment_methods: [method()],
    deleted: false,
    ...times(version),
    ...unknown(),
  });
  const order = (version: number, more: object = {}): Wire => ({
    id: id("order"),
    order_number: `N${digits}`,
    customer_id: id("customer"),
    status: "failed",
    items: [{ id: "i-1", product_id: "p-1", name: mark(), quantity: 1, price: 1_200, engraving: mark() }],
    subtotal: 1_200,
    discount_amount: 200,
    total: 1_000,
    currency: "usd",
    description: mark(),
    applied_coupon: coupon(),
    payment_method: card(),
    transactions: [
      {
        id: id("sale"),
        type: "sale",
        status: "failed",
        amount: 1_000,
        currency: "usd",
        processor_transaction_id: id("processor"),
        attempt_count: 1,
        failure_code: "insufficient_funds",
        failure_reason: mark(),
        ...times(version),
        ...unknown(),
      },
    ],
    shipping_address: address(),
    metadata: metadata(),
    failure_code: "insufficient_funds",
    failure_reason: mark(),
    subscription_id: id("subscription"),
    subscription_cycle: 2,
    ...times(version),
    ...unknown(),
    ...more,
  });
  const disputed = (version: number): Wire =>
    order(version, {
      id: id("disputed"),
      order_number: `D${digits}`,
      status: "chargeback",
      subscription_id: null,
      subscription_cycle: null,
      failure_code: null,
      failure_reason: null,
      transactions: [],
    });
  const subscription = (version: number): Wire => ({
    id: id("subscription"),
    customer_id: id("customer"),
    plan: { id: "plan-1", name: mark(), amount: 1_000, currency: "usd" },
    status: "past_due",
    billing_cycle: { interval: "month", interval_count: 1, anchor_day: "signup_date" },
    payment_method: card(),
    shipping_address: address(),
    current_period_start: times(0).created_at,
    current_period_end: times(0).created_at,
    current_billing_cycle: 2,
    total_billing_cycles: 0,
    next_billing_date: times(0).created_at,
    start_date: times(0).created_at,
    applied_coupon: coupon(),
    failure_reason: mark(),
    attempt_count: 1,
    next_retry_at: times(30).updated_at,
    cycles: [{ cycle: 1, order_id: id("order"), status: "paid", amount: 1_000, memo: mark() }],
    ...times(version),
    ...unknown(),
  });
  const sale = (version: number): Wire => ({
    id: id("sale"),
    type: "sale",
    status: "failed",
    amount: 1_000,
    currency: "usd",
    customer_id: id("customer"),
    order_id: id("order"),
    payment_method: card(),
    processor_response: processor(),
    failure_reason: mark(),
    description: mark(),
    metadata: metadata(),
    ...times(version),
    ...unknown(),
  });

  return {
    markers,
    mark,
    email,
    phone,
    objects: (version) => ({
      customers: [customer(version)],
      orders: [order(version), disputed(version)],
      subscriptions: [subscription(version)],
      transactions: [sale(version)],
    }),
    events: (version) => [
      { type: "customer.created", object: customer(version) },
      {
        type: "order.failed",
        object: order(version, {
          attempt_count: 1,
          next_retry_at: times(30).updated_at,
          customer: customer(version),
        }),
      },
      { type: "order.chargeback", object: disputed(version) },
      { type: "subscription.updated", object: subscription(version) },
      { type: "transaction.updated", object: sale(version) },
      { type: "customer.payment_method.added", object: { ...method(), ...unknown() } },
      { type: "review.written", object: { customer_id: id("customer"), text: mark() } },
    ],
    strays: () => [
      { type: "mail.sent", object: { to: `${mark()} <${email.toUpperCase()}>`, text: mark() } },
      { type: "sms.sent", object: { number: phone, text: mark() } },
      { type: "refund.noted", object: { order_id: id("order"), text: mark() } },
      { type: "order.chargeback.updated", object: { id: id("disputed"), reason: mark() } },
      // Other letters of the same address, escapes, HTML, an address in a URL, and texts in base64.
      {
        type: "mail.bounced",
        object: {
          recipients: [{ address: email.replace("mail", "MAIL") }],
          html: `&lt;${email}&gt; ${mark()}`,
        },
      },
      {
        type: "page.visited",
        object: {
          url: `https://shop.example/?email=${encodeURIComponent(email)}&q=${mark()}`,
          blob: Buffer.from(mark()).toString("base64"),
        },
      },
      {
        type: "form.sent",
        object: { form: `email=${encodeURIComponent(email)}&note=${mark()}` },
      },
      { type: "page.read", object: { html: `Dear &lt;${email}&gt;`, text: mark() } },
      { type: "sms.failed", object: { text: `to ${phone}: ${mark()}` } },
      { type: "call.made", object: { number: phone.replace(/^\+1/, "00 1 "), text: mark() } },
      { type: "payment.odd", object: { customers: [id("customer")], text: mark() } },
      { type: "cart.left", object: { user: id("customer"), text: mark() } },
      { type: "cart.left", object: { [email]: true, text: mark() } },
      `{"type": "order.created", "customer_id": "${id("customer")}", "note": "${mark()}"`,
      `type=order.created&customer=${id("customer")}&note=${mark()}`,
      `email=${encodeURIComponent(email)}&note=${mark()}`,
      `{"customer_id": "${escaped(id("customer"))}", "note": "${mark()}"`,
      `<mail to="${email}">${mark()}</mail>`,
      `\u{feff}{"broken": "${email.toUpperCase()}", "note": "${mark()}"`,
    ],
  };
}
