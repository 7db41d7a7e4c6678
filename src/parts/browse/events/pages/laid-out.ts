/** Deeper bodies are shown as they are: laid out, each level would be indented more. */
const deepest = 200;
/** So are those that would become longer than this, mostly by blanks. */
const mostCharacters = 1_000_000;

/** Strings, marks, and what stands between them; no JSON has anything else but blanks. */
const tokens = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|[^\s{}[\],:"]+/g;

/**
 * JSON with each value on a line of its own. Numbers keep their spelling, since parsing might change them; so does a
 * text that is no JSON. One pass over the text: an event's sender decides how many values it has.
 */
export function laidOut(text: string): string {
  if (!isJson(text)) return text;
  const parts: string[] = [];
  let [depth, length, isEmpty] = [0, 0, false];
  const add = (part: string): void => {
    parts.push(part);
    length += part.length;
  };
  const newLine = (): void => add(`\n${"  ".repeat(depth)}`);
  for (const [token] of text.matchAll(tokens)) {
    if (token === "}" || token === "]") {
      depth -= 1;
      if (!isEmpty) newLine();
      add(token);
    } else {
      if (isEmpty) newLine();
      add(token === ":" ? ": " : token);
      if (token === "{" || token === "[") depth += 1;
      if (token === ",") newLine();
    }
    isEmpty = token === "{" || token === "[";
    if (depth > deepest || length > mostCharacters) return text;
  }
  return parts.join("");
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
