export interface SqlStatement {
  /** From its first word to before its semicolon. */
  text: string;
  /** Where it begins in the file, in characters. */
  offset: number;
  /** The comments before it and in it, without their marks. */
  comments: string[];
}

// In this order: a comment, a string, a quoted name, a body between dollars, a word, the end of a statement, all else.
const token =
  /(?<space>\s+)|--(?<line>[^\n]*)|\/\*(?<block>.*?)\*\/|(?<text>[eE]'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|"(?:[^"]|"")*"|\$(?<tag>(?:[a-z_]\w*)?)\$.*?\$\k<tag>\$)|(?<word>[a-z_]\w*)|(?<end>;)|./gisy;

/**
 * Splits the text of a file into its statements, as the server would. Knows strings, quoted names, bodies between
 * dollars, comments (not nested ones) and the bodies of functions that begin with `begin atomic`.
 */
export function splitStatements(text: string): SqlStatement[] {
  const found: SqlStatement[] = [];
  let from: number | null = null;
  let comments: string[] = [];
  let words: string[] = [];
  let depth = 0;
  const finish = (to: number): void => {
    if (from !== null) found.push({ text: text.slice(from, to).trimEnd(), offset: from, comments });
    [from, comments, words, depth] = [null, [], [], 0];
  };
  for (const match of text.matchAll(token)) {
    const { space, line, block, word, end } = match.groups ?? {};
    const comment = line ?? block;
    if (space !== undefined) continue;
    if (comment !== undefined) {
      comments.push(comment.trim());
    } else if (end !== undefined && depth === 0) {
      finish(match.index);
    } else {
      from ??= match.index;
      if (word === undefined) continue;
      words.push(word.toLowerCase());
      depth += depthChange(words, depth);
    }
  }
  finish(text.length);
  return found;
}

/** The change of depth that the last word makes among the blocks in the body of a function of the SQL standard. */
function depthChange(words: readonly string[], depth: number): number {
  const [last, before] = [words.at(-1), words.at(-2)];
  if (last === "atomic" && before === "begin" && words[0] === "create") return 1;
  if (depth === 0) return 0;
  return last === "case" ? 1 : last === "end" ? -1 : 0;
}
