import type { Change } from "../../core/mirror/changes/read-changes.ts";
import { changeKinds } from "../../core/mirror/changes/kinds.ts";
import { moneyText } from "../../platform/money.ts";
import { withoutControls } from "../../platform/readable-text.ts";

const kindWidth = Math.max(...changeKinds.map(({ length }) => length));

/** A change on one line, for a person. */
export function changeLine(change: Change): string {
  const { seq, recordedAt, kind, resource, id, amount, currency, cause, isSuperseded } = change;
  const parts = [
    recordedAt.toISOString(),
    String(seq).padStart(8),
    withoutControls(kind).padEnd(kindWidth),
    `${withoutControls(resource)} ${withoutControls(id)}`,
    statusText(change),
    amount === null && currency === null ? "" : moneyText(amount, currency),
    withoutControls(cause),
    isSuperseded ? "late" : "",
  ];
  return parts.filter((part) => part !== "").join("  ");
}

function statusText({ fromStatus, toStatus }: Change): string {
  const [from, to] = [withoutControls(fromStatus ?? ""), withoutControls(toStatus ?? "")];
  if (from === to) return to;
  return from === "" ? `→ ${to}` : `${from} → ${to}`;
}
