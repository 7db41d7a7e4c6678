import { UsageError } from "../platform/errors.ts";

/**
 * The headers of a captured request, names and values in turn, from a file in one of the forms that tools
 * write: `Name: value` lines (a request line before them and the marks of `curl -v` do not matter), a JSON
 * object of headers, or a JSON list as `rawHeaders` has it. Throws `UsageError` when it is none of them.
 */
export function parseCapturedHeaders(text: string): string[] {
  const trimmed = text.trim();
  return trimmed.startsWith("{") || trimmed.startsWith("[")
    ? fromJson(trimmed)
    : trimmed.split(/\r?\n/).flatMap(fromLine);
}

function fromLine(line: string): string[] {
  const header = line.replace(/^[<>*] ?/, "");
  const colon = header.indexOf(":");
  const name = header.slice(0, Math.max(colon, 0)).trim();
  // A request line, an empty line, a chatty line of a tool.
  if (name === "" || /\s/.test(name)) return [];
  return [name, header.slice(colon + 1).trim()];
}

function fromJson(text: string): string[] {
  let headers: unknown;
  try {
    headers = JSON.parse(text);
  } catch {
    throw new UsageError("The file of headers looks like JSON and is none.");
  }
  if (Array.isArray(headers)) {
    // [name, value, …], or [[name, value], …]
    const flat: unknown[] = headers.flat();
    if (flat.length % 2 === 0 && flat.every((item) => typeof item === "string")) return flat;
    throw new UsageError("A JSON list of headers must hold names and values in turn, all text.");
  }
  return Object.entries(headers as Record<string, unknown>).flatMap(([name, value]) => {
    const values: unknown[] = Array.isArray(value) ? value : [value];
    return values.flatMap((each) => [name, String(each)]);
  });
}
