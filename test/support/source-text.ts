/** One import of a module, in any syntax. */
export interface ImportedModule {
  /** The specifier as written; null when it is computed (`import(path)`). */
  readonly specifier: string | null;
  readonly line: number;
  /** The statement hands names on (`export … from`). */
  readonly reExport: boolean;
}

const REGEX_MAY_FOLLOW_CHARACTER = /[([{,;:=!&|?+\-*%~^<>]$/;
const REGEX_MAY_FOLLOW_WORD = /\b(?:return|typeof|case|in|of|do|else|void|delete|await|yield|new)$/;

/**
 * The text with the insides of comments, strings, templates and regular expressions blanked, every character still in
 * its place: the remaining text is code. The code in `${…}` stays.
 */
export const blankNonCode = (text: string): string => blank(text, "all but code");

/** The text with comments blanked, every character still in its place: the remaining text is code and its strings. */
export const blankComments = (text: string): string => blank(text, "comments");

/**
 * A lexer and not a parser: the one guess is whether a slash divides or opens a regular expression,
 * taken from what stands before it.
 */
function blank(text: string, what: "comments" | "all but code"): string {
  let out = "";
  /** For each open template, the number of braces open inside its current `${`. */
  const templates: number[] = [];
  let at = 0;

  const keep = (count = 1): void => {
    out += text.slice(at, at + count);
    at += count;
  };
  const blankTo = (end: number): void => {
    out += text.slice(at, end).replace(/[^\n]/g, " ");
    at = end;
  };
  const passLiteral = (end: number): void => {
    if (what === "comments") keep(end - at);
    else blankTo(end);
  };
  const endOf = (pattern: RegExp): number => {
    pattern.lastIndex = at;
    return pattern.test(text) ? pattern.lastIndex : text.length;
  };
  const template = (): void => {
    const end = endOf(/(?:[^\\`$]|\\[^]|\$(?!\{))*/y);
    passLiteral(end);
    if (text[at] === "$") {
      templates.push(0);
      keep(2);
    } else {
      keep();
    }
  };
  const regexMayStart = (): boolean => {
    const before = out.trimEnd();
    return before === "" || REGEX_MAY_FOLLOW_CHARACTER.test(before) || REGEX_MAY_FOLLOW_WORD.test(before.slice(-12));
  };

  while (at < text.length) {
    const character = text[at] ?? "";
    const two = text.slice(at, at + 2);
    const open = templates.length - 1;
    if (two === "//") {
      blankTo(endOf(/[^\n]*/y));
    } else if (two === "/*") {
      blankTo(endOf(/\/\*[^]*?\*\//y));
    } else if (character === '"' || character === "'") {
      const end = endOf(character === '"' ? /"(?:[^"\\\n]|\\[^])*"?/y : /'(?:[^'\\\n]|\\[^])*'?/y);
      keep();
      passLiteral(end - 1);
      keep();
    } else if (character === "`") {
      keep();
      template();
    } else if (character === "/" && regexMayStart()) {
      const end = endOf(/\/(?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])*\/[a-z]*/y);
      passLiteral(end);
    } else if (character === "{" && open >= 0) {
      templates[open] = (templates[open] ?? 0) + 1;
      keep();
    } else if (character === "}" && open >= 0) {
      keep();
      const depth = templates[open] ?? 0;
      if (depth > 0) {
        templates[open] = depth - 1;
      } else {
        templates.pop();
        template();
      }
    } else {
      keep();
    }
  }
  return out;
}

/** Every module a file imports: import, export … from, import for effects, dynamic and type imports. */
export function importedModules(text: string): ImportedModule[] {
  const code = blankNonCode(text);
  const found: ImportedModule[] = [];
  const add = (offset: number, quoteAt: number | null, reExport: boolean): void => {
    let specifier: string | null = null;
    if (quoteAt !== null) {
      const end = code.indexOf(code[quoteAt] ?? "", quoteAt + 1);
      specifier = text.slice(quoteAt + 1, end);
    }
    found.push({ specifier, line: text.slice(0, offset).split("\n").length, reExport });
  };

  const fromClause =
    /\b(import|export)\s*(?:type\b\s*)?(?:[\w$]+\s*,?\s*)?(?:\*\s*(?:as\s+[\w$]+\s*)?|\{[^{}]*\}\s*)?from\s*(?=["'])/g;
  for (const match of code.matchAll(fromClause)) {
    add(match.index, match.index + match[0].length, match[1] === "export");
  }
  for (const match of code.matchAll(/\bimport\s*(?=["'])/g)) {
    add(match.index, match.index + match[0].length, false);
  }
  for (const match of code.matchAll(/(?<![.\w$])import\s*\(\s*(["'])?/g)) {
    add(match.index, match[1] === undefined ? null : match.index + match[0].length - 1, false);
  }
  return found;
}
