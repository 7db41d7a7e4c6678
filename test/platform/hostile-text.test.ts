import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { cpuMs } from "../support/cpu-time.ts";
import { blankComments, blankNonCode } from "../support/source-text.ts";

/** Every regular expression of the program that may look at a text of any length, with its place. */
const expressions = new Map<string, { place: string; expression: RegExp }>();
const literal = /\/((?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+)\/([a-z]*)/y;
for (const file of readdirSync("src", { recursive: true, encoding: "utf8" })) {
  if (!file.endsWith(".ts")) continue;
  const text = blankComments(readFileSync(join("src", file), "utf8"));
  const code = blankNonCode(text);
  for (let at = text.indexOf("/"); at >= 0; at = text.indexOf("/", at + 1)) {
    // A slash that divides is code; one inside a string or a template stands behind its quotation mark.
    if (code[at] !== " " || /["'`}]\s*$/.test(code.slice(0, at))) continue;
    literal.lastIndex = at;
    const [found, source = "", flags = ""] = literal.exec(text) ?? [];
    if (found === undefined) continue;
    at += found.length;
    if (!/[*+]|\{\d*,/.test(source)) continue;
    const place = `${file}:${text.slice(0, at).split("\n").length}`;
    expressions.set(found, { place, expression: new RegExp(source, flags) });
  }
}

/** Expressions that would be slow for a long text, and why they never see one. */
const neverLong = new Map([
  ["/0+$/", "mirror/is-stored.ts: the fraction of a second in a time's fixed form, six digits"],
  ["/\\/+$/", "service/client.ts, platform/setting-kinds.ts: our own setting SVC_BASE_URL"],
  ["/\\B(?=(\\d{3})+$)/g", "reports/figures/amounts.ts: the digits of one amount"],
  ["/\\/\\/\\S*@/g", "platform/settings.ts: our own settings, of 500 characters at most"],
  ["/(:\\/\\/[^?#]*[?#]).+/", "platform/settings.ts: our own settings, of 500 characters at most"],
]);

const length = 100_000;
const pieces = [
  ..."a0 /:@.-_\"'<{([=\n%,|+]*".split(""),
  ..."://|a.|a-|a |<a|<a |0.|00 |0-|\n    at |a@|t=|ab=|//|/*|*/|\\|é|[0|0]|{a|a}|/**|a_|.a|a,".split("|"),
];
const ends = ["", "!", "\u0000", "x y"];

it("finds the expressions of the program", () => {
  expect(expressions.size).toBeGreaterThan(80);
  for (const each of neverLong.keys()) expect([...expressions.keys()]).toContain(each);
});

it.each([...expressions].filter(([text]) => !neverLong.has(text)))(
  "a long text from anywhere is looked through at once by %s",
  (_, { place, expression }) => {
    const slow = pieces.flatMap((piece) => {
      const many = piece.repeat(length / piece.length);
      return ends.flatMap((end) => {
        const text = `${many}${end}`;
        // A quadratic search of so long a text takes some ten seconds, a linear one a millisecond.
        const ms = cpuMs(() => void text.replace(expression, ""));
        return ms > 1_000 ? [`${place} ${JSON.stringify(piece)}: ${ms} ms`] : [];
      });
    });
    expect(slow).toEqual([]);
  },
);
