import fc from "fast-check";
import type { Knex } from "knex";
import { describe, expect, test } from "vitest";
import { boundsOf, calendarOf, monthOf } from "../../src/parts/reconcile/pages/calendar.ts";
import { renderCoverage } from "../../src/parts/reconcile/pages/coverage-routes.ts";
import { trustOf } from "../../src/parts/reconcile/pages/trust.ts";
import { listName } from "../../src/parts/reconcile/pages/words.ts";
import { checkProof } from "../../src/parts/reports/check-reports.ts";
import type { Resource } from "../../src/core/mirror/snapshot.ts";
import { type ProvedPart, listProofs, proofOf, provedParts } from "../../src/parts/reconcile/coverage/proof.ts";
import { boundText, slicedResources } from "../../src/parts/reconcile/coverage/slice.ts";
import { readProof } from "../../src/parts/reports/base/report-facts.ts";
import { coverAll } from "../reports/coverage.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { emptyTables } from "../support/empty-tables.ts";
import { rounds } from "../support/rounds.ts";

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

/** A part of a list that was read, in hours of the grid; null: from the first record on. */
interface Read {
  resources: readonly Resource[];
  from: number | null;
  before: number;
  /** It was read within the rotation, and counts. */
  isFresh: boolean;
}

/** Long parts from the first record on are as usual as short ones: else nothing would ever be proved. */
const reads = (last: number): fc.Arbitrary<Read[]> =>
  fc.array(
    fc
      .record({
        resources: fc.oneof(fc.constant(slicedResources), fc.subarray([...slicedResources], { minLength: 1 })),
        ends: fc.uniqueArray(fc.integer({ min: 0, max: last }), { minLength: 2, maxLength: 2 }),
        hasStart: fc.boolean(),
        isFresh: fc.boolean(),
      })
      .map(({ resources, ends, hasStart, isFresh }) => ({
        resources,
        from: hasStart ? Math.min(...ends) : null,
        before: Math.max(...ends),
        isFresh,
      })),
    { maxLength: 6 },
  );

/** What the reads themselves show: whether each moment of a range was read by one that counts. */
function isProved(
  ledger: readonly Read[],
  resources: readonly Resource[],
  { from, before }: { from: number; before: number },
): boolean {
  for (const resource of resources) {
    for (let hour = from; hour < before; hour++) {
      const isRead = ledger.some(
        (read) =>
          read.isFresh &&
          read.resources.includes(resource) &&
          (read.from === null || read.from <= hour) &&
          hour < read.before,
      );
      if (!isRead) return false;
    }
  }
  return true;
}

/** Before hour 0 of the grid nothing begins: a part that has no start covers it all. */
const beginning = -1;

const words = (markup: string): string =>
  markup
    .replaceAll(/<[^>]*>/g, " ")
    .replaceAll(/\s+/g, " ")
    .trim();

/** The sentences and cells of the page of coverage that say that something is proved, with the range and the lists. */
function claimsOf(
  page: string,
  { month, now, hourOf }: { month: { from: Date; before: Date }; now: Date; hourOf: (at: Date) => number },
): { resources: readonly Resource[]; from: number; before: number; says: string }[] {
  const text = words(page);
  const moment = (match: RegExpExecArray | null) =>
    match === null ? null : hourOf(new Date(`${match[1]}T${match[2]}Z`));
  const [start, end] = [hourOf(month.from), Math.min(hourOf(month.before), hourOf(now))];
  const claims: ReturnType<typeof claimsOf> = [];
  const [all] = /No gap: [^.]*/.exec(text) ?? [];
  if (all !== undefined) {
    const until = moment(/before (\S+) (\S+) UTC is proved/.exec(all)) ?? end;
    claims.push({ resources: slicedResources, from: start, before: until, says: all });
  }
  const whole = moment(/Proved equal until (\S+) (\S+) UTC/.exec(text));
  if (whole !== null) {
    claims.push({ resources: slicedResources, from: beginning, before: whole, says: "headline" });
  }
  for (const resource of slicedResources) {
    const says = new RegExp(`${listName(resource)} : proved [^.]*`).exec(text)?.[0] ?? "";
    const until = moment(/: proved equal until (\S+) (\S+) UTC/.exec(says));
    if (until !== null) {
      claims.push({ resources: [resource], from: beginning, before: until, says });
    }
  }
  for (const [, day = "", row = ""] of page.matchAll(/<time datetime="(\S{10})">(.*?)<\/td>/gs)) {
    const cells = [...row.matchAll(/<li title="[^":]*: (.*?)">/gs)].map(([, cell = ""]) => words(cell));
    for (const [n, cell] of cells.entries()) {
      const from = hourOf(new Date(`${day}T00:00Z`));
      if (!/^proved\b/.test(cell)) continue;
      claims.push({
        resources: slicedResources.slice(n, n + 1),
        from,
        before: from + 24,
        says: `${day} ${cell}`,
      });
    }
  }
  return claims;
}

describe("the page of coverage", () => {
  const origin = Date.parse("2026-11-20T00:00:00Z");
  const at = (hour: number) => new Date(origin + hour * hourMs);
  const last = 24 * 20;
  const hourOf = (moment: Date) => (moment.getTime() - origin) / hourMs;

  const pageOf = (ledger: readonly Read[], now: Date, month: ReturnType<typeof monthOf>) => {
    const parts = ledger.flatMap(({ resources, from, before, isFresh }, run) =>
      resources.map((resource): ProvedPart => ({
        resource,
        run,
        from: from === null ? null : boundText(at(from)),
        before: boundText(at(before)),
        readAt: at(before),
        isFresh,
      })),
    );
    const fresh = parts.filter((part) => part.isFresh);
    const proofs = slicedResources.map((resource) =>
      proofOf(resource, fresh, {
        wasRead: parts.some((part) => part.resource === resource),
        now,
      }),
    );
    const calendar = calendarOf(month, { proofs, parts, now, timeZone: "UTC" });
    const trust = trustOf({ proofs, open: [], now, timeZone: "UTC" });
    return renderCoverage({ trust, month: calendar, timeZone: "UTC" }).markup;
  };

  test("says of no range that it is proved which the reads do not show, whatever was read and whenever it is looked at", () => {
    const looks = fc.record({
      ledger: reads(last),
      now: fc.integer({ min: 1, max: last }),
      name: fc.constantFrom("2026-11", "2026-12"),
    });
    let claimed = 0;
    fc.assert(
      fc.property(looks, ({ ledger, now, name }) => {
        const month = monthOf(name, at(now), "UTC");
        const bounds = boundsOf(month, "UTC");
        const page = pageOf(ledger, at(now), month);
        for (const claim of claimsOf(page, { month: bounds, now: at(now), hourOf })) {
          claimed += 1;
          // What was created before the grid is read by the parts without a start alone.
          const range = { from: Math.max(beginning, claim.from), before: claim.before };
          expect(isProved(ledger, claim.resources, range), claim.says).toBe(true);
          expect(claim.before, claim.says).toBeLessThanOrEqual(now);
        }
      }),
      { numRuns: rounds(40, 400) },
    );
    expect(claimed).toBeGreaterThan(40);
  });

  const full = (until: number): Read[] => [{ resources: slicedResources, from: null, before: until, isFresh: true }];
  const november = { year: 2026, month: 11 };
  const december = { year: 2026, month: 12 };
  const hour = (text: string) => hourOf(new Date(`2026-${text}:00Z`));
  const textOf = (...[ledger, now, month]: Parameters<typeof pageOf>) => words(pageOf(ledger, now, month));

  test("says on the first morning of a month that the next run is to prove it, and of the last one until when", () => {
    const [ledger, now] = [full(hour("11-30T04:00")), at(hour("12-01T09:00"))];
    expect(textOf(ledger, now, december)).toContain(
      "December 2026 is not proved yet: the next run is to prove what was created since 2026-11-30 04:00 UTC.",
    );
    const past = textOf(ledger, now, november);
    expect(past).toContain(
      "No gap: all that was created in November 2026 before 2026-11-30 04:00 UTC is proved. The next run is to prove what was created since.",
    );
    expect(past).not.toContain("nothing proves");
  });

  test("says of a month that is over and proved that all of it is, and of one that goes on until when", () => {
    const now = at(hour("12-03T09:00"));
    expect(textOf(full(hour("12-03T04:00")), now, november)).toContain(
      "No gap: all that was created in November 2026 is proved.",
    );
    expect(textOf(full(hour("12-03T09:00")), now, december)).toContain(
      "No gap: all that was created in December 2026 before 2026-12-03 09:00 UTC is proved.",
    );
  });
});

describe("all that speaks of proof", () => {
  const database = useTestDatabase();

  /** Hour 0 is ten days ago; the last hour is the one that is not over. */
  const last = 240;

  test("says the same of a ledger: page, metric, verdict of a report, and doctor", async () => {
    const { db } = database;
    await fc.assert(
      fc.asyncProperty(
        reads(last),
        fc.integer({ min: 1, max: last }),
        fc.integer({ min: 1, max: last }),
        async (ledger, from, to) => {
          const origin = Math.floor(Date.now() / hourMs) * hourMs - last * hourMs;
          const at = (hour: number) => new Date(origin + hour * hourMs);
          const hourOf = (moment: Date) => (moment.getTime() - origin) / hourMs;
          const lastRun = await store(db, ledger, at);
          const now = new Date();
          const proofs = await listProofs(db, { now, at: now });
          for (const { resource, provedUntil } of proofs) {
            const until = provedUntil === null ? beginning : hourOf(provedUntil);
            expect(isProved(ledger, [resource], { from: beginning, before: until })).toBe(true);
            expect(isProved(ledger, [resource], { from: beginning, before: until + 1 })).toBe(false);
          }

          const [fromUtc, toUtc] = [from, to].sort((a, b) => a - b).map((n) => at(n).toISOString());
          const proof = await readProof(db, { fromUtc: fromUtc ?? "", toUtc: toUtc ?? "" }, null);
          const range = { from: beginning, before: Math.max(from, to) };
          // A part that was read counts here as if the lists by status had been read with it.
          const changes = Math.max(...ledger.map(({ before }) => before), beginning);
          const isWhole = isProved(ledger, slicedResources, range) && changes >= range.before;
          expect(proof.verdict).toBe(isWhole ? "PASS" : "INCOMPLETE");
          if (proof.readUntil !== null) {
            const until = hourOf(new Date(proof.readUntil));
            expect(isProved(ledger, slicedResources, { from: beginning, before: until })).toBe(true);
          }

          const { status } = await checkProof({ db: async () => db });
          const told = { from: beginning, before: lastRun ?? 0 };
          expect(status === "ok").toBe(
            lastRun !== null && isProved(ledger, slicedResources, told) && changes >= told.before,
          );

          const month = monthOf(null, now, "UTC");
          const bounds = boundsOf(month, "UTC");
          const parts = await provedParts(db, { ...bounds, at: now });
          const calendar = calendarOf(month, { proofs, parts, now, timeZone: "UTC" });
          const trust = trustOf({ proofs, open: [], now, timeZone: "UTC" });
          const page = renderCoverage({ trust, month: calendar, timeZone: "UTC" }).markup;
          for (const claim of claimsOf(page, { month: bounds, now, hourOf })) {
            expect(isProved(ledger, claim.resources, claim), claim.says).toBe(true);
          }
        },
      ),
      { numRuns: rounds(8, 80) },
    );
  });

  /** Gives back the end of the last run, in hours. */
  async function store(db: Knex, ledger: readonly Read[], at: (hour: number) => Date): Promise<number | null> {
    await emptyTables(db, ["reconcile.runs"]);
    for (const { resources, from, before, isFresh } of ledger) {
      await coverAll(db, at(before).toISOString(), {
        from: from === null ? null : at(from).toISOString(),
        resources,
        endedAgo: `${isFresh ? 2 * hourMs : 40 * dayMs} milliseconds`,
      });
    }
    return ledger.at(-1)?.before ?? null;
  }
});
