/** A group of the checklist of the service: its statements are numbered on from `first`, one letter each. */
export interface StatementGroup {
  title: string;
  first: number;
  /** `S`: stated in the interface. `A`: not shown there, our default. */
  kinds: string;
}

/** Numbers and kinds of the 538 statements. */
export const statementGroups: readonly StatementGroup[] = [
  { title: "Transport, base path, format", first: 1, kinds: "SSAAAAASASASSAAAAAASAA" },
  {
    title: "Authentication, keys, environments, permissions",
    first: 23,
    kinds: "SSSSSSASSSSSSSSSAAAASS",
  },
  { title: "Errors", first: 45, kinds: "SSSAAASSSSASSSSSASSSA" },
  { title: "Idempotency", first: 66, kinds: "SSSSSASASSSSSSAASAAAAAAAA" },
  { title: "Rate limiting", first: 91, kinds: "SSSSSAAAAA" },
  { title: "Versioning", first: 101, kinds: "SSSSSSSSSSASSSA" },
  { title: "Lists and pagination", first: 116, kinds: "SSSASAASSSSAAAAAAAASASASSAAAAS" },
  { title: "Roles and team members", first: 146, kinds: "SSSSSSSSSSASSSSAS" },
  { title: "Customers", first: 163, kinds: "SSSSSSSSASSSSSSSSASASASSSAASSASSSSSAA" },
  { title: "Payment methods, gateway, capture", first: 200, kinds: "SSSASASSASSSSSASSSSSASSSSSSS" },
  { title: "Sandbox cards", first: 228, kinds: "SSSSSSSSSSSAASA" },
  { title: "Products and images", first: 243, kinds: "SSSSSASSSSSSAAASSSSSSASSA" },
  { title: "Plans", first: 268, kinds: "SSSSSSSA" },
  { title: "Orders: create", first: 276, kinds: "SSSSSSSSSSSSSASSSSAASSSSASSS" },
  { title: "Orders: coupons on orders", first: 304, kinds: "SSSSSSSASSAAAS" },
  { title: "Orders: list and retrieve", first: 318, kinds: "SSAASSSASSS" },
  { title: "Orders: refund", first: 329, kinds: "SSSASASSSSAAS" },
  { title: "Orders: retry", first: 342, kinds: "SSSASSASAAASS" },
  { title: "Orders: chargeback and void", first: 355, kinds: "SAAAAAAAA" },
  { title: "Subscriptions: create", first: 364, kinds: "SSSSSSASSSSSSSASASSSSSSSSSS" },
  {
    title: "Subscriptions: list, retrieve, update, cancel",
    first: 391,
    kinds: "SAASSSSSSSSSSSSSSAA",
  },
  { title: "Subscriptions: billing and dunning jobs", first: 410, kinds: "SSAASSSAAAASSSAA" },
  { title: "Transactions", first: 426, kinds: "SSSSSSSSSSSSA" },
  { title: "Coupons: create, list, retrieve", first: 439, kinds: "SSSSSSASSASSASSAS" },
  { title: "Coupons: update, archive, codes", first: 456, kinds: "SSSSSSASSSSSSSSSSSAASA" },
  { title: "Coupons: validate", first: 478, kinds: "SSSSSSSS" },
  { title: "Webhook endpoints", first: 486, kinds: "SSSSSSSSSSASSSSSASS" },
  { title: "Event delivery", first: 505, kinds: "SAASAAASSSSSAAAAAA" },
  { title: "Accounting invariants the sandbox itself must keep", first: 523, kinds: "SSSSSSASA" },
  { title: "Sandbox controls", first: 532, kinds: "AAAAAAA" },
];
