/**
 * Signatures that other implementations published, so that one misreading of a scheme cannot hide
 * both in our signing and in our verifying.
 */

/**
 * HMAC-SHA-256 test cases 1 to 4, 6 and 7 of RFC 4231 (section 4). Case 5 shows a truncated digest,
 * which no scheme here uses. Keys and data in hex.
 */
export const rfc4231 = [
  {
    case: 1,
    key: "0b".repeat(20),
    data: Buffer.from("Hi There").toString("hex"),
    digest: "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
  },
  {
    case: 2,
    key: Buffer.from("Jefe").toString("hex"),
    data: Buffer.from("what do ya want for nothing?").toString("hex"),
    digest: "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
  },
  {
    case: 3,
    key: "aa".repeat(20),
    data: "dd".repeat(50),
    digest: "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe",
  },
  {
    case: 4,
    key: "0102030405060708090a0b0c0d0e0f10111213141516171819",
    data: "cd".repeat(50),
    digest: "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b",
  },
  {
    case: 6,
    key: "aa".repeat(131),
    data: Buffer.from("Test Using Larger Than Block-Size Key - Hash Key First").toString("hex"),
    digest: "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
  },
  {
    case: 7,
    key: "aa".repeat(131),
    data: Buffer.from(
      "This is a test using a larger than block-size key and a larger than block-size data. " +
        "The key needs to be hashed before being used by the HMAC algorithm.",
    ).toString("hex"),
    digest: "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2",
  },
];

/**
 * Plain hex over the body. GitHub documentation, "Validating webhook deliveries", section "Testing
 * the webhook payload validation" (there the header carries a `sha256=` prefix before it).
 */
export const githubHex = {
  secret: "It's a Secret to Everybody",
  body: "Hello, World!",
  signature: "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
};

/**
 * `t=…,v1=…` over `<t>.<body>`. muxinc/mux-node-sdk, test/unit/webhooks (header said there to be
 * made by the service's own backend); the same vector is in its Ruby and Elixir SDKs.
 */
export const muxTimestamped = {
  secret: "SuperSecret123",
  body: '{"test":"body"}',
  seconds: 1565125718,
  header: "t=1565125718,v1=854ece4c22acef7c66b57d4e504153bc512595e8e9c772ece2a68150548c19a7",
};

/**
 * Standard Webhooks. svix/svix-webhooks, php/tests/WebhookTest.php, "testSignFunctionWorks"; the
 * reference libraries of standard-webhooks/standard-webhooks test against the same one.
 */
export const standardWebhooks = {
  secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
  id: "msg_p5jXN8AQM9LWM0D4loKWxJek",
  seconds: 1614265330,
  body: '{"test": 2432232314}',
  signature: "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
};
