import { tallyhook } from "../../../platform/command-line.ts";
import { type Html, html } from "../../../platform/html.ts";
import { moneyText } from "../../../platform/money.ts";
import { counted, durationText } from "../../../platform/readable-text.ts";
import type { Gap } from "../coverage/coverage.ts";
import { type ListProof, lateByMs } from "../coverage/proof.ts";
import type { OpenFindings } from "../findings/search-findings.ts";
import { type Tone, time, timeText } from "../../../app/dashboard/elements/values.ts";
import type { Reason } from "../../../app/dashboard/page-group.ts";
import { listName } from "./words.ts";

export interface ListTrust {
  resource: string;
  tone: Tone;
  /** One sentence without its list's name. */
  sentence: Html;
}

export interface Trust {
  tone: Tone;
  headline: Html;
  lists: readonly ListTrust[];
  /** The reasons why the mirror is not proved equal, each one sentence with a link; empty where it is. */
  reasons: readonly Reason[];
}

/** Clocks that NTP keeps, and the grace of a run, differ by less. */
const usualAheadMs = 60_000;

export interface TrustFacts {
  proofs: readonly ListProof[];
  open: readonly OpenFindings[];
  /** Service time. */
  now: Date;
  timeZone: string;
}

/** The trust in the mirror as a whole and in each list. It never claims more than reads have shown. */
export function trustOf(facts: TrustFacts): Trust {
  const lists = facts.proofs.map((proof) => trustOfList(proof, facts));
  const { proofs } = facts;
  const tones = lists.map(({ tone }) => tone);
  const tone = tones.includes("bad") ? "bad" : tones.includes("warn") ? "warn" : "good";
  return {
    tone,
    headline: headlineOf(proofs, facts),
    lists,
    reasons: reasonsOf(lists, facts.open),
  };
}

/** Lists with the same reason share a sentence. */
function reasonsOf(
  lists: readonly { resource: string; reason: string | null }[],
  open: readonly OpenFindings[],
): Trust["reasons"] {
  const named = new Map<string, string[]>();
  for (const { resource, reason } of lists) {
    if (reason === null) continue;
    named.set(reason, [...(named.get(reason) ?? []), listName(resource)]);
  }
  const unproved = [...named].map(([reason, names]) => ({
    text: `${names.length === lists.length ? "Every list" : names.join(", ")}: ${reason}.`,
    path: "/reconciliation",
    next: "See the gap",
  }));
  const drift = [...new Set(open.map(({ resource }) => resource ?? "object"))].flatMap((resource) => {
    const { n } = driftOf(open, resource);
    const text = `${listName(resource)}: ${counted(n, "object differs", "objects differ")} from the service.`;
    const path = `/reconciliation/findings?list=${encodeURIComponent(resource)}`;
    return n === 0 ? [] : [{ text, path, next: "Heal" }];
  });
  return [...drift, ...unproved];
}

function headlineOf(proofs: readonly ListProof[], facts: TrustFacts): Html {
  const differing = driftOf(facts.open, null);
  const untils = proofs.map(({ provedUntil }) => provedUntil);
  if (untils.every((until) => until === null)) {
    return proofs.some(({ isOutdated }) => isOutdated)
      ? html`Not proved any more: the last reads are too old`
      : html`Not proved yet`;
  }
  if (differing.n > 0) {
    return html`${counted(differing.n, "object differs", "objects differ")} from the service`;
  }
  const aheadMs = Math.max(...proofs.map((proof) => proof.aheadMs));
  if (aheadMs > usualAheadMs) {
    return html`Not certain: the clocks disagree by ${durationText(aheadMs)}`;
  }
  const ends = untils.map((until) => until?.getTime() ?? Number.NEGATIVE_INFINITY);
  const first = Math.min(...ends);
  if (first === Number.NEGATIVE_INFINITY) return html`Proved in part`;
  return html`Proved equal until ${time(new Date(first), facts.timeZone)}`;
}

function trustOfList(proof: ListProof, facts: TrustFacts): ListTrust & { reason: string | null } {
  const { resource, provedUntil, lastProved, gaps, isOutdated, aheadMs } = proof;
  const { now, timeZone } = facts;
  const drift = driftOf(facts.open, resource);
  const say = (tone: Tone, sentence: Html, reason: string | null) => ({
    resource,
    tone,
    sentence,
    reason,
  });
  if (lastProved === null) {
    return isOutdated
      ? say("bad", html`proved once, by reads that are too old to count`, "what proved it is too old to count")
      : say("warn", html`never proved`, "nothing was ever proved");
  }
  const [gap] = gaps;
  const proved = html`proved${drift.n === 0 && " equal"} until ${time(provedUntil ?? lastProved, timeZone)}`;
  if (gap !== undefined) {
    const words = gapText(gap, timeZone);
    const more = gaps.length > 1 ? ` and ${counted(gaps.length - 1, "other part", "other parts")}` : "";
    return say(
      "warn",
      html`${provedUntil === null ? html`proved in part` : proved}; nothing proves ${words}${more}; the rest is proved
      until ${time(lastProved, timeZone)}${differs(drift)}`,
      `nothing proves ${words}${more}`,
    );
  }
  if (drift.n > 0) {
    return say("bad", html`${proved}${differs(drift)}`, null);
  }
  if (aheadMs > usualAheadMs) {
    const disagree = durationText(aheadMs);
    const end = time(new Date(now.getTime() + aheadMs), timeZone);
    return say(
      "warn",
      html`not certain: it was read until ${end} by the service's clock, which is still to come here. The clocks
        disagree by ${disagree}; <code>${tallyhook("doctor")}</code> compares them, and NTP sets them`,
      `the clocks of the service and of this machine disagree by ${disagree}; "${tallyhook("doctor")}" compares them`,
    );
  }
  const lateMs = lateByMs(proof, now);
  const accepted = acknowledgedOf(facts.open, resource);
  const except = accepted > 0 ? `, except for ${counted(accepted, "accepted difference")}` : "";
  if (lateMs > 0) {
    return say(
      "warn",
      html`${proved}, ${durationText(lateMs)} ago${except}`,
      `nothing proves the last ${durationText(lateMs)}`,
    );
  }
  return say("good", html`${proved}${except}`, null);
}

const differs = ({ n, amounts }: Drift): string =>
  n === 0
    ? ""
    : `, but ${counted(n, "object differs", "objects differ")}` +
      (amounts.length > 0 ? ` (${amounts.join(", ")} at risk)` : "");

/** A part of a list's history in words, such as `2026-11-03 14:00 UTC to 15:00 UTC`. */
export function gapText({ from, before }: Gap, timeZone: string): string {
  const [start, end] = [from, before].map((at) => (at === null ? null : new Date(at)));
  if (start == null) return `what was created before ${end == null ? "now" : timeText(end, timeZone)}`;
  if (end == null) return `what was created since ${timeText(start, timeZone)}`;
  if (end.getTime() - start.getTime() < 1_000) return `a moment at ${start.toISOString()}`;
  return `${timeText(start, timeZone)} to ${timeText(end, timeZone)}`;
}

interface Drift {
  n: number;
  /** Money at risk, by currency. */
  amounts: string[];
}

/** Unacknowledged differences; of every list where `resource` is null. */
function driftOf(open: readonly OpenFindings[], resource: string | null): Drift {
  const own = open.filter(
    (row) => row.isDrift && !row.isAcknowledged && (resource === null || (row.resource ?? "object") === resource),
  );
  return { n: own.reduce((sum, { n }) => sum + n, 0), amounts: amountsOf(own) };
}

/** Money at risk by currency, as text. */
export function amountsOf(rows: readonly OpenFindings[]): string[] {
  const sums = new Map<string, bigint>();
  for (const { currency, amountAtRiskMinor } of rows) {
    if (currency === null || amountAtRiskMinor === "0") continue;
    sums.set(currency, (sums.get(currency) ?? 0n) + BigInt(amountAtRiskMinor));
  }
  return [...sums].map(([currency, minor]) => moneyText(minor, currency));
}

const acknowledgedOf = (open: readonly OpenFindings[], resource: string): number =>
  open
    .filter((row) => row.isDrift && row.isAcknowledged && row.resource === resource)
    .reduce((sum, { n }) => sum + n, 0);

/** The mirror's trust, largest first. Lists that share a sentence share a line. */
export function renderTrust({ tone, headline, lists }: Trust): Html {
  const lines = new Map<string, ListTrust[]>();
  for (const list of lists) {
    const key = `${list.tone} ${list.sentence.markup}`;
    lines.set(key, [...(lines.get(key) ?? []), list]);
  }
  return html`<section class="trust ${tone}" aria-labelledby="trust">
    <h2 id="trust">${headline}</h2>
    <ul class="plain-list">
      ${[...lines.values()].map(
        (same) =>
          html`<li class="${same[0]?.tone ?? "calm"}">
            <strong>${same.map(({ resource }) => listName(resource)).join(", ")}</strong>: ${same[0]?.sentence ?? ""}.
          </li>`,
      )}
    </ul>
  </section>`;
}
