import { nearestName } from "../../../platform/nearest-name.ts";
import { type ChangeKind, changeKinds } from "./kinds.ts";

/** The kind of that name, or the problem with the name, worded for its author. */
export function kindNamed(text: string): { kind: ChangeKind } | { problem: string } {
  const kind = changeKinds.find((known) => known === text);
  if (kind !== undefined) return { kind };
  const shown = text.length > 80 ? `${text.slice(0, 80).toWellFormed()}…` : text;
  return { problem: `"${shown}" is no kind of change. ${hintFor(text)}` };
}

function hintFor(text: string): string {
  const nearest = nearestName(text.slice(0, 80), changeKinds);
  if (nearest !== null) return `Did you mean "${nearest}"?`;
  const word = lastWord(text);
  const alike = changeKinds.filter((kind) => lastWord(kind) === word);
  if (alike.length === 0) return `The kinds are ${changeKinds.join(", ")}.`;
  const names = alike.map((kind) => `"${kind}"`);
  return `Did you mean ${names.join(" or ")}?`;
}

const lastWord = (text: string): string => text.slice(text.indexOf(".") + 1);
