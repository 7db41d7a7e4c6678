import { describe, expect, it } from "vitest";
import { createEncryption } from "../../src/platform/encryption.ts";
import { type OverviewSources, describeSecrets, isUsableRow } from "../../src/core/receiver/secrets-overview.ts";
import type { SecretRow } from "../../src/core/receiver/secrets-store.ts";

const now = new Date("2026-03-10T12:00:00Z");
const hoursAgo = (hours: number): Date => new Date(now.getTime() - hours * 3_600_000);

function row(id: string, parts: Partial<SecretRow> = {}): SecretRow {
  return {
    id,
    ciphertext: Buffer.alloc(0),
    key_id: "k",
    not_before: null,
    not_after: null,
    created_at: hoursAgo(1_000),
    last_used_at: null,
    retired_at: null,
    note: null,
    ...parts,
  };
}

function describeAll(rows: SecretRow[], parts: Partial<OverviewSources> = {}) {
  const sources = { rows, environmentIds: [], recentUses: new Map(), usable: () => true, ...parts };
  return describeSecrets(sources, { now, quietHours: 48 });
}

const retirable = (rows: SecretRow[], parts: Partial<OverviewSources> = {}): string[] =>
  describeAll(rows, parts)
    .filter(({ safeToRetire }) => safeToRetire !== null)
    .map(({ id }) => id);

describe("the state of a secret", () => {
  it.each([
    ["live", {}],
    ["live", { not_before: now }],
    ["pending", { not_before: hoursAgo(-1) }],
    ["ending", { not_after: hoursAgo(-1) }],
    ["ended", { not_after: now }],
    ["ended", { not_after: hoursAgo(1) }],
  ] as const)("is %s with %j", (state, parts) => {
    expect(describeAll([row("a", parts)])[0]?.state).toBe(state);
  });

  it("is unusable when it cannot be decrypted or used", () => {
    expect(describeAll([row("a")], { usable: () => false })[0]?.state).toBe("unusable");
    const encryption = createEncryption({ current: "ab".repeat(32) });
    const stored = (value: string): SecretRow => {
      const { keyId, ciphertext } = encryption.encrypt(value);
      return row("a", { key_id: keyId, ciphertext });
    };
    expect(isUsableRow(encryption, "svc", stored("long-enough-for-a-secret"))).toBe(true);
    expect(isUsableRow(encryption, "standard-webhooks", stored("long-enough-for-a-secret"))).toBe(false);
    expect(isUsableRow(encryption, "svc", row("a"))).toBe(false);
    expect(isUsableRow(null, "svc", stored("long-enough-for-a-secret"))).toBe(false);
  });
});

describe("safe to retire", () => {
  it("is a secret that went quiet while another one is used", () => {
    const old = row("old", { last_used_at: hoursAgo(49) });
    const next = row("next", { last_used_at: hoursAgo(1), created_at: hoursAgo(60) });
    expect(retirable([next, old])).toEqual(["old"]);
  });

  it("is none before it was quiet long enough", () => {
    const old = row("old", { last_used_at: hoursAgo(47) });
    const next = row("next", { last_used_at: hoursAgo(1), created_at: hoursAgo(60) });
    expect(retirable([next, old])).toEqual([]);
  });

  it("is none while nothing arrives at all", () => {
    const old = row("old", { last_used_at: hoursAgo(100) });
    const next = row("next", { last_used_at: hoursAgo(90), created_at: hoursAgo(99) });
    expect(retirable([next, old])).toEqual([]);
  });

  it("is not the new one that waits for its first use", () => {
    const old = row("old", { last_used_at: hoursAgo(1) });
    const next = row("next", { created_at: hoursAgo(60) });
    expect(retirable([next, old])).toEqual([]);
  });

  it("is one that was never used, once a newer one is", () => {
    const skipped = row("skipped", { created_at: hoursAgo(100) });
    const next = row("next", { last_used_at: hoursAgo(1), created_at: hoursAgo(60) });
    expect(retirable([next, skipped])).toEqual(["skipped"]);
  });

  it("is none that has ended or not begun", () => {
    const ended = row("ended", { last_used_at: hoursAgo(90), not_after: hoursAgo(1) });
    const next = row("next", { last_used_at: hoursAgo(1) });
    expect(retirable([next, ended])).toEqual([]);
  });

  it("takes what the inbox shows into account, also for the environment", () => {
    const uses = new Map([
      ["env:old", hoursAgo(60)],
      ["db:next", hoursAgo(1)],
    ]);
    expect(retirable([row("db:next")], { environmentIds: ["env:old"], recentUses: uses })).toEqual(["env:old"]);
    expect(retirable([row("db:next")], { environmentIds: ["env:unseen"] })).toEqual([]);
  });
});
