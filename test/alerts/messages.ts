import type { SentMessage } from "../../src/parts/alerts/message.ts";

/** What an attacker may have put into a name. */
export const hostile =
  `<!channel> <script>alert('1')</script> & "q" | @channel @everyone\r\nBcc: thief@example.com\u0000` +
  `\u202Egpj.exe\u2066 <https://evil.example|click> \ud800 ${"long ".repeat(2_000)}`;

export const message: SentMessage = {
  dedupKey: "dunning:sub_1:7#1",
  idempotencyKey: "dunning:sub_1:7#1/attempt-2/team",
  action: "trigger",
  severity: "error",
  rule: "dunning_renewal",
  stage: "attempt-2",
  title: "Renewal declined: 29.00 EUR",
  facts: [
    { label: "Customer", value: "j•••@example.com" },
    { label: "Card", value: "•••• 4242" },
  ],
  advice: "Ask for a new card now.",
  links: [{ label: "Dashboard", url: "https://tallyhook.example.com/alerts/7?a=1&b=2" }],
  at: "2026-11-21T10:00:00.000Z",
  runbook: "docs/runbooks.md#dunning_renewal",
};

/** The same, hostile wherever a person's words can be. */
export const hostileMessage: SentMessage = {
  ...message,
  dedupKey: `decline:${hostile}`,
  idempotencyKey: `decline:${hostile}/team`,
  stage: hostile,
  title: hostile,
  advice: hostile,
  facts: Array.from({ length: 60 }, () => ({ label: hostile, value: "&".repeat(10_000) })),
  links: [
    { label: hostile, url: "https://example.com/<!channel>|x" },
    { label: "no", url: "javascript:alert(1)" },
    { label: "no", url: "not a url" },
  ],
  items: Array.from({ length: 300 }, () => ({
    title: hostile,
    facts: Array.from({ length: 20 }, () => ({ label: hostile, value: hostile })),
  })),
};
