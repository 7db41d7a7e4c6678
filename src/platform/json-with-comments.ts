export type Path = readonly PropertyKey[];

export type JsonWithComments =
  | {
      ok: true;
      value: unknown;
      /** The line (from 1) of what stands at this path, or of the nearest that encloses it. */
      lineOf: (path: Path) => number;
    }
  | { ok: false; line: number; reason: string };

/**
 * Reads JSON in which `//` and block comments and a comma after the last element may stand, and which remembers on
 * which line each value is. A key that is there twice is refused: one of the two would silently not count.
 */
export function parseJsonWithComments(text: string): JsonWithComments {
  const lines = new Map<string, number>();
  let at = 0;

  const lineAt = (offset: number): number => text.slice(0, offset).split("\n").length;
  const fail = (reason: string, offset = at): never => {
    throw new Unreadable(lineAt(offset), reason);
  };

  function take(pattern: RegExp): string | null {
    pattern.lastIndex = at;
    const found = pattern.exec(text)?.[0] ?? null;
    at += found?.length ?? 0;
    return found;
  }

  /** Goes past blanks and comments, and says what comes then; nothing at the end. */
  function next(): string {
    take(blanksAndComments);
    if (text.startsWith("/*", at)) fail("this comment has no end");
    return text[at] ?? "";
  }

  function takeText(what: string): string {
    const start = at;
    const raw = take(quotedText) ?? fail(`${what} in double quotes should stand here`);
    try {
      return JSON.parse(raw) as string;
    } catch {
      return fail(`${what} has an unknown escape in it`, start);
    }
  }

  function elements(end: string, takeOne: () => void): void {
    const start = at++;
    const unended = `the ${text[start]} here has no ${end}`;
    while (next() !== end) {
      if (at >= text.length) fail(unended, start);
      takeOne();
      const after = next();
      if (after === "") fail(unended, start);
      if (after === ",") at++;
      else if (after !== end) fail(`a comma or ${end} should stand here`);
    }
    at++;
  }

  function takeObject(path: Path): unknown {
    const entries = new Map<string, unknown>();
    elements("}", () => {
      const start = at;
      const key = takeText("a key");
      if (entries.has(key)) fail(`the key ${JSON.stringify(key)} is there twice`, start);
      if (next() !== ":") fail("a colon should stand here");
      at++;
      entries.set(key, takeValue([...path, key]));
    });
    return Object.fromEntries(entries);
  }

  function takeArray(path: Path): unknown[] {
    const values: unknown[] = [];
    elements("]", () => values.push(takeValue([...path, values.length])));
    return values;
  }

  function takeValue(path: Path): unknown {
    const first = next();
    lines.set(placeOf(path), lineAt(at));
    if (first === "{") return takeObject(path);
    if (first === "[") return takeArray(path);
    if (first === '"') return takeText("a text");
    const word = take(numberOrWord);
    return word === null ? fail("a value should stand here") : (JSON.parse(word) as unknown);
  }

  try {
    const value = takeValue([]);
    if (next() !== "") fail("nothing should stand after the end");
    const lineOf = (path: Path): number =>
      lines.get(placeOf(path)) ?? (path.length === 0 ? 1 : lineOf(path.slice(0, -1)));
    return { ok: true, value, lineOf };
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error;
    return { ok: false, line: error.line, reason: error.message };
  }
}

class Unreadable extends Error {
  readonly line: number;

  constructor(line: number, reason: string) {
    super(reason);
    this.line = line;
  }
}

const blanksAndComments = /(?:[ \t\r\n\uFEFF]|\/\/[^\n]*|\/\*[\s\S]*?\*\/)*/y;
const quotedText = /"(?:[^"\\\n\r]|\\.)*"/y;
const numberOrWord = /(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)(?![\w.])/y;

const placeOf = (path: Path): string => JSON.stringify(path.map(String));
