/** Where a line ends at most, unless one name is longer. */
const width = 120;

type Node = string | Node[];

/** What begins a clause; of several the longest. */
const clauses = [
  "with",
  "select",
  "insert into",
  "update",
  "set",
  "from",
  "left join",
  "where",
  "order by",
  "limit",
  "on conflict",
  "do update set",
  "do nothing",
  "returning",
  "union all",
].map((clause) => clause.split(" "));

/**
 * SQL for the eye of a reviewer: a clause a line; what is too long for one breaks at its commas, then at `and` and `or`,
 * at the parts of a `case`, and last in its brackets. Changes white space alone, and the same text always becomes the same.
 */
export function readableSql(sql: string): string {
  const { nodes } = nested(tokensOf(sql), 0);
  return `${linesOf(nodes, 0).join("\n")}\n`;
}

/** The text without what `readableSql` may change. */
export const withoutLayout = (sql: string): string =>
  tokensOf(sql)
    .map((token) => token.trim())
    .join(" ");

/** A bracket that stands apart from the word before it keeps its space. */
const tokensOf = (sql: string): string[] =>
  sql
    .replace(/\s+\(/g, " (")
    .match(/--[^\n]*|'(?:[^']|'')*'|"[^"]*"|::|<>|>=|<=|\|\||->>|->|\w+\.\*|[\w.$]+| ?\(|\S/g) ?? [];

const closings: Readonly<Record<string, string>> = { "(": ")", " (": ")", "[": "]", case: "end" };

function nested(tokens: readonly string[], start: number, until = ""): { nodes: Node[]; next: number } {
  const nodes: Node[] = [];
  let at = start;
  for (; at < tokens.length; at++) {
    const token = tokens[at] ?? "";
    if (token === until) break;
    nodes.push(token);
    const closing = closings[token];
    if (closing === undefined) continue;
    const inner = nested(tokens, at + 1, closing);
    nodes.push(inner.nodes, tokens[inner.next] ?? "");
    at = inner.next;
  }
  return { nodes, next: at };
}

/** On one line. */
function inline(nodes: readonly Node[]): string {
  let text = "";
  for (const node of nodes) {
    const part = typeof node === "string" ? node : inline(node);
    const isFirst = text === "" || /(?:[([]|::)$/.test(text);
    const isTight = isFirst || /^(?:[,)\]([ ]|::)/.test(part);
    text += isFirst ? part.trimStart() : isTight ? part : ` ${part}`;
  }
  return text;
}

const hasComment = (nodes: readonly Node[]): boolean =>
  nodes.some((node) => (typeof node === "string" ? node.startsWith("--") : hasComment(node)));

const fits = (nodes: readonly Node[], indent: number): boolean =>
  !hasComment(nodes) && indent + inline(nodes).length <= width;

/** How many words begin a clause here; none in `is distinct from`. */
const isClause = (nodes: readonly Node[], at: number): number =>
  nodes[at - 1] === "distinct"
    ? 0
    : Math.max(0, ...clauses.map((words) => (words.every((word, n) => nodes[at + n] === word) ? words.length : 0)));

/** The clauses of one level, each on lines of its own. */
function linesOf(nodes: readonly Node[], indent: number): string[] {
  const parts: { head: Node[]; rest: Node[] }[] = [];
  for (let at = 0; at < nodes.length; at++) {
    const node = nodes[at] ?? "";
    const length = isClause(nodes, at);
    const isComment = typeof node === "string" && node.startsWith("--");
    if (length > 0 || isComment || parts.length === 0) {
      const words = Math.max(length, isComment ? 1 : 0);
      parts.push({ head: nodes.slice(at, at + words), rest: [] });
      at += words - 1;
    } else parts.at(-1)?.rest.push(node);
  }
  return parts.flatMap(({ head, rest }) => {
    const whole = [...head, ...rest];
    if (fits(whole, indent) || isOneComment(whole)) return [" ".repeat(indent) + inline(whole)];
    if (head.length === 0) return brokenUp(rest, indent);
    const items = splitAt(rest, [","]);
    if (items.length === 1 && opensAtEnd(rest)) return brokenUp(whole, indent);
    return [" ".repeat(indent) + inline(head), ...items.flatMap((item) => itemLines(item, indent + 2))];
  });
}

const isOneComment = (nodes: readonly Node[]): boolean =>
  nodes.length === 1 && typeof nodes[0] === "string" && nodes[0].startsWith("--");

/** One bracket with something short before it, such as `recorded as (…)`. */
const opensAtEnd = (nodes: readonly Node[]): boolean =>
  Array.isArray(nodes.at(-2)) && !nodes.slice(0, -2).some(Array.isArray);

/** Pieces that begin with one of the words; a comma ends a piece instead. */
function splitAt(nodes: readonly Node[], words: readonly string[]): Node[][] {
  const pieces: Node[][] = [[]];
  for (const node of nodes) {
    const isBreak = typeof node === "string" && words.includes(node);
    if (isBreak && node !== "," && pieces.at(-1)?.length !== 0) pieces.push([]);
    pieces.at(-1)?.push(node);
    if (isBreak && node === ",") pieces.push([]);
  }
  return pieces.filter((piece) => piece.length > 0);
}

const itemLines = (item: readonly Node[], indent: number): string[] =>
  fits(item, indent) ? [" ".repeat(indent) + inline(item)] : brokenUp(item, indent);

/** Something too long for a line, at the first of its joints. */
function brokenUp(nodes: readonly Node[], indent: number): string[] {
  for (const words of [[","], ["or"], ["and"], ["when", "else"], ["then"]]) {
    const pieces = splitAt(nodes, words);
    if (pieces.length === 1) continue;
    return pieces.flatMap((piece, n) => itemLines(piece, indent + (words[0] === "then" && n > 0 ? 2 : 0)));
  }
  return opened(nodes, indent);
}

/** With the longest of its brackets, or `case`s, on lines of their own. */
function opened(nodes: readonly Node[], indent: number): string[] {
  if (fits(nodes, indent)) return [" ".repeat(indent) + inline(nodes)];
  let longest = -1;
  nodes.forEach((node, at) => {
    if (!Array.isArray(node)) return;
    if (longest === -1 || inline(node).length > inline([nodes[longest] ?? ""]).length) longest = at;
  });
  const inner = nodes[longest];
  if (!Array.isArray(inner)) return [" ".repeat(indent) + inline(nodes)];
  const isStatement = isClause(inner, 0) > 0;
  const isList = splitAt(inner, [","]).length > 1;
  return [
    ...opened(nodes.slice(0, longest), indent),
    ...(isStatement
      ? linesOf(inner, indent + 2)
      : isList
        ? filled(inner, indent + 2)
        : fits(inner, indent + 2) && nodes[longest - 1] !== "case"
          ? [" ".repeat(indent + 2) + inline(inner)]
          : brokenUp(inner, indent + 2)),
    ...opened(nodes.slice(longest + 1), indent),
  ];
}

/** A list, as many items a line as fit. */
function filled(nodes: readonly Node[], indent: number): string[] {
  const lines: string[] = [];
  let line: Node[] = [];
  const end = () => {
    if (line.length > 0) lines.push(" ".repeat(indent) + inline(line));
    line = [];
  };
  for (const item of splitAt(nodes, [","])) {
    if (!fits([...line, ...item], indent)) end();
    if (fits(item, indent)) line.push(...item);
    else lines.push(...brokenUp(item, indent));
  }
  end();
  return lines;
}
