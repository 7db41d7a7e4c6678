import type { SyntaxNode } from "@lezer/common";
import { parser } from "@prometheus-io/lezer-promql";

/** `name{label="value"}` of an expression. */
export interface Selector {
  metric: string;
  matchers: { label: string; operator: string; value: string }[];
}

/** What an expression in PromQL names. */
export interface Promql {
  selectors: Selector[];
  /** Labels of `by`, `without`, `on`, `ignoring` and `group_left`. */
  grouped: string[];
  /** Comparisons with a number, as they stand: `> 300`. */
  limits: { operator: string; value: number }[];
}

/** Reads an expression with the parser of Prometheus' own pages. Throws where it does not understand. */
export function readPromql(expression: string): Promql {
  const tree = parser.parse(expression);
  const text = (node: SyntaxNode): string => expression.slice(node.from, node.to);
  const found: Promql = { selectors: [], grouped: [], limits: [] };
  tree.iterate({
    enter({ node, type }) {
      if (type.isError) {
        throw new Error(`not PromQL at character ${node.from}: ${expression}`);
      }
      if (type.name === "VectorSelector") found.selectors.push(selectorOf(node, text));
      if (type.name === "GroupingLabels") {
        found.grouped.push(...node.getChildren("LabelName").map(text));
      }
      if (type.name === "BinaryExpr") found.limits.push(...limitOf(node, text));
    },
  });
  return found;
}

function selectorOf(node: SyntaxNode, text: (node: SyntaxNode) => string): Selector {
  const name = node.getChild("Identifier");
  if (name === null) throw new Error(`a selector without a metric: ${text(node)}`);
  const matchers = node.getChild("LabelMatchers")?.getChildren("UnquotedLabelMatcher") ?? [];
  return {
    metric: text(name),
    matchers: matchers.map((matcher) => {
      const [label, operator, value] = ["LabelName", "MatchOp", "StringLiteral"].map((part) => {
        const child = matcher.getChild(part);
        if (child === null) throw new Error(`a matcher without ${part}: ${text(matcher)}`);
        return text(child);
      });
      return { label: label!, operator: operator!, value: value!.slice(1, -1) };
    }),
  };
}

function limitOf(node: SyntaxNode, text: (node: SyntaxNode) => string): { operator: string; value: number }[] {
  const [, operator, right] = [node.firstChild, node.firstChild?.nextSibling, node.lastChild];
  if (operator === undefined || operator === null || right === null) return [];
  const isLimit = /^(?:Gtr|Gte|Lss|Lte|Eql|Neq)$/.test(operator.name);
  return isLimit && right.name === "NumberDurationLiteral"
    ? [{ operator: text(operator), value: Number(text(right)) }]
    : [];
}
