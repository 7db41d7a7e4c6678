import { type TextKind, readFreeText, wantedText } from "../../platform/free-text.ts";
import { PageError } from "../route.ts";

/** The text of a form's field; null where nothing was typed. Throws `PageError` for what is no such text. Pure. */
export function optionalText(form: URLSearchParams, name: string, kind: TextKind): string | null {
  const typed = form.get(name) ?? "";
  return typed.trim() === "" ? null : requiredText(form, name, kind);
}

/** The same of a field that has to be filled in. */
function requiredText(form: URLSearchParams, name: string, kind: TextKind): string {
  const text = readFreeText(form.get(name) ?? "", kind);
  if (text !== null) return text;
  throw new PageError(400, `The ${name} has to be ${wantedText(kind)}. Write it again: nothing was done.`);
}
