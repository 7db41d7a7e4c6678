import fc from "fast-check";
import { read, utils } from "@e965/xlsx";
import { describe, expect, test, vi } from "vitest";
import { currencyDigits, decimalText } from "../../../src/platform/money.ts";
import { type Format, createRendering, defuse } from "../../../src/parts/reports/render/formats.ts";
import { renderXlsx } from "../../../src/parts/reports/render/xlsx.ts";
import type { Column, Row } from "../../../src/parts/reports/base/report.ts";
import { about } from "../sample-about.ts";

const columns: Column[] = [
  { name: "note", kind: "text" },
  { name: "day", kind: "day" },
  { name: "at", kind: "time" },
  { name: "month", kind: "month" },
  { name: "currency", kind: "text" },
  { name: "amount", kind: "money", isSummed: true },
  { name: "balance", kind: "money" },
  { name: "n", kind: "count", isSummed: true },
  { name: "share_percent", kind: "percent" },
];
const rows: Row[] = [
  ["=HYPERLINK(1)", "2026-10-31", "2026-10-31T22:59:59.250Z", "2026-10-01", "usd", "-1234", "5", "3", "12.50"],
  ['a "quote", a comma', "2026-11-01", null, "2026-11-01", "jpy", "1234", "9007199254740993", "4", "0.00"],
  ["plain", "2026-11-01", "2026-11-01T00:00:00.000Z", "2026-11-01", "kwd", "1234", "0", "1", null],
  ["+1", "2026-11-02", null, "2026-11-01", "usd", "5", "0", "2", null],
];
async function render(format: Format, given: readonly Row[] = rows): Promise<Buffer> {
  const chunks: Buffer[] = [];
  const write = (chunk: string | Uint8Array) => {
    chunks.push(Buffer.from(chunk));
    return Promise.resolve();
  };
  const report = { name: "refunds", explains: "what it answers" };
  const rendering = createRendering(format, { report, columns, exponents: currencyDigits, write });
  for (const row of given) await rendering.rows([row]);
  await rendering.end(about);
  return Buffer.concat(chunks);
}

/** Lines of the journal, with some of its columns. */
async function renderJournal(format: Format, lines: readonly Row[]): Promise<string> {
  let printed = "";
  const write = (chunk: string | Uint8Array) => {
    printed += Buffer.from(chunk).toString();
    return Promise.resolve();
  };
  const journalColumns: Column[] = [
    { name: "number", kind: "text" },
    { name: "account", kind: "text" },
    { name: "debit", kind: "money" },
    { name: "credit", kind: "money" },
    { name: "currency", kind: "text" },
  ];
  const report = { name: "journal", explains: "", takesAccounts: true } as const;
  const input = { report, columns: journalColumns, exponents: currencyDigits, write };
  const rendering = createRendering(format, input);
  await rendering.rows(lines);
  await rendering.end(about);
  return printed;
}

test("CSV has names and rows alone, defuses text and leaves numbers untouched", async () => {
  expect((await render("csv")).toString()).toBe(
    [
      "note,day,at,month,currency,amount,balance,n,share_percent",
      "'=HYPERLINK(1),2026-10-31,2026-10-31T22:59:59.250Z,2026-10,usd,-12.34,0.05,3,12.50",
      '"a ""quote"", a comma",2026-11-01,,2026-11,jpy,1234,9007199254740993,4,0.00',
      "plain,2026-11-01,2026-11-01T00:00:00.000Z,2026-11,kwd,1.234,0.000,1,",
      "'+1,2026-11-02,,2026-11,usd,0.05,0.00,2,",
      "",
    ].join("\n"),
  );
});

test("the journal's CSV has an amount on one side, and codes of ISO 4217, as ledgers want it", async () => {
  const lines: Row[] = [
    ["TH-20261031-USD", "1200", "1234", "0", "usd"],
    ["TH-20261031-USD", "4000", "0", "1234", "usd"],
  ];
  expect((await renderJournal("csv", lines)).split("\n")).toEqual([
    "number,account,debit,credit,currency",
    "TH-20261031-USD,1200,12.34,,USD",
    "TH-20261031-USD,4000,,12.34,USD",
    "",
  ]);
});

test.each(["ledger", "beancount"] as const)(
  "no currency, whatever its text, makes two commodities one or breaks out of its %s entry",
  async (format) => {
    const odd = ["usd", 'u"d', "u\n2026-01-01 *", "é", "1", "", "x".repeat(40), "x".repeat(41)];
    const lines = odd.map((currency): Row => [
      `TH-20261031-${currency.toUpperCase()}`,
      "Assets:Clearing",
      "5",
      "0",
      currency,
    ]);
    const printed = await renderJournal(format, lines);
    const commodities = [...printed.matchAll(/^    Assets:Clearing  \S+ "?([A-Z0-9.]+)"?  ; $/gm)];
    expect(new Set(commodities.map(([, code]) => code)).size).toBe(odd.length);
    expect(printed.split("\n").filter((line) => !/^(?:;|    |$)/.test(line))).toHaveLength(odd.length);
  },
);

test("no text of a CSV begins like a formula, and no number is changed", () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      expect(defuse(text, "text")).not.toMatch(/^[=+\-@\t\r\n]/);
      expect(defuse(text, "money")).toBe(text);
    }),
  );
  expect(defuse("\n=1+1", "text")).toBe("'\n=1+1");
});

test("money is exact at any size and with any number of decimals", () => {
  fc.assert(
    fc.property(fc.bigInt({ min: -(10n ** 30n), max: 10n ** 30n }), fc.integer({ min: 0, max: 4 }), (minor, digits) => {
      const text = decimalText(minor.toString(), digits);
      expect(BigInt(text.replace(".", ""))).toBe(minor);
      expect(text.split(".")[1]?.length ?? 0).toBe(digits);
    }),
  );
});

test("JSON holds the rows by name, money as text of minor units, and what they are", async () => {
  const json = JSON.parse((await render("json")).toString()) as { rows: unknown[]; about: unknown };
  expect(json.rows[1]).toMatchObject({
    amount: "1234",
    balance: "9007199254740993",
    n: 4,
    at: null,
  });
  expect(json.about).toEqual(about);
  expect(JSON.parse((await render("json", [])).toString())).toMatchObject({ rows: [], about });
});

test("money of a currency without known decimals stays in minor units, and says so", async () => {
  const unknown = ["x", "2026-11-01", null, "2026-11-01", "zzz", "-1234567", "0", "1", null];
  expect((await render("csv", [unknown])).toString()).toContain(",zzz,-1234567 minor units,0 minor units,1,");
  expect((await render("table", [unknown])).toString()).toContain("-1234567 minor units");
  expect((await render("html", [unknown])).toString()).toContain("-1,234,567 minor units");
  const book = read(await render("xlsx", [unknown]), { cellNF: true });
  const cell = book.Sheets["refunds"]!["F2"] as unknown;
  expect(cell).toMatchObject({ t: "n", v: -1_234_567, w: "-1,234,567 minor units" });
});

test("a table says what it is, and sums each currency for itself", async () => {
  const text = (await render("table")).toString();
  expect(text).toContain("from 2026-09-30T22:00:00Z, before 2026-11-30T23:00:00Z (UTC)");
  expect(text).toContain(about.sha256);
  expect(text).toMatch(/Result +PASS/);
  const sums = text.split("\n").filter((line) => /\bsum /.test(line));
  expect(sums.map((line) => line.replaceAll(/\s+/g, " ").trim())).toEqual([
    "sum jpy 1234 4",
    "sum kwd 1.234 1",
    "sum usd -12.29 5",
  ]);
});

describe("a workbook, as another program reads it", () => {
  test("has typed numbers and dates, a frozen header, sums and a sheet about itself", async () => {
    const book = read(await render("xlsx"), { cellDates: true, cellNF: true, UTC: true });
    expect(book.SheetNames).toEqual(["refunds", "about"]);
    const sheet = book.Sheets["refunds"]!;
    expect(sheet["A1"]).toMatchObject({ t: "s", v: "note" });
    expect(sheet["A2"]).toMatchObject({ t: "s", v: "=HYPERLINK(1)" });
    expect(sheet["A2"]).not.toHaveProperty("f");
    expect(sheet["B2"]).toMatchObject({ t: "d", v: new Date("2026-10-31T00:00:00Z") });
    expect((sheet["C2"] as { v: Date }).v.getTime()).toBeCloseTo(Date.parse("2026-10-31T22:59:59.250Z"), -2);
    expect(sheet["F2"]).toMatchObject({ t: "n", v: -12.34, z: "#,##0.00" });
    expect(sheet["F3"]).toMatchObject({ t: "n", v: 1234, z: "#,##0" });
    expect(sheet["F4"]).toMatchObject({ t: "n", v: 1.234, z: "#,##0.000" });
    expect(sheet["G3"]).toMatchObject({ t: "s", v: "9007199254740993" });
    expect(sheet["H2"]).toMatchObject({ t: "n", v: 3 });
    expect(sheet["A6"]).toMatchObject({ v: "sum jpy" });
    expect([sheet["F6"], sheet["F7"], sheet["F8"]]).toMatchObject([{ v: 1234 }, { v: 1.234 }, { v: -12.29 }]);
    expect(sheet["G8"]).toBeUndefined();
    const aboutRows = utils.sheet_to_json<string[]>(book.Sheets["about"]!, { header: 1 });
    expect(new Map(aboutRows.map(([label, value]) => [label, value])).get("SHA-256")).toBe(about.sha256);
  });

  test("keeps an order number that looks like a number, a date or a truth as it is", async () => {
    const numbers = ["00012345", "12345E67", "1E100000", "20261101", "0x1A2B3C", "TRUE"];
    const given = numbers.map((number) => [number, ...rows[3]!.slice(1)]);
    const sheet = read(await render("xlsx", given), { cellDates: true }).Sheets["refunds"]!;
    expect(numbers.map((_, n) => sheet[`A${n + 2}`] as unknown)).toMatchObject(numbers.map((v) => ({ t: "s", v })));
    const csv = (await render("csv", given)).toString().trimEnd().split("\n").slice(1);
    expect(csv.map((line) => line.split(",")[0])).toEqual(numbers);
  });

  test("shows the last moment of a day on that day", async () => {
    const last = ["", "2026-10-31", "2026-10-31T23:59:59.999Z", null, "usd", "0", "0", "3", null];
    const book = read(await render("xlsx", [last]), { cellNF: true });
    const sheet = book.Sheets["refunds"]!;
    expect(sheet["C2"]).toMatchObject({ w: "2026-10-31 23:59:59.999 UTC" });
  });

  test("freezes the header", async () => {
    const book = read(await render("xlsx"), { bookFiles: true }) as unknown as {
      files: Record<string, { content: Uint8Array }>;
    };
    const xml = Buffer.from(book.files["xl/worksheets/sheet1.xml"]?.content ?? []).toString();
    expect(xml).toMatch(/<pane [^>]*ySplit="1"[^>]*state="frozen"/);
  });

  test("has the same bytes whenever it is made", async () => {
    vi.useFakeTimers({ toFake: ["Date"], now: new Date("2026-10-01T00:00:00Z") });
    const first = await render("xlsx");
    vi.setSystemTime(new Date("2027-02-03T04:05:06Z"));
    const second = await render("xlsx").finally(() => vi.useRealTimers());
    expect(second.equals(first)).toBe(true);
  });

  test("goes on in another sheet where one is full, with the sums at the end", async () => {
    const chunks: Uint8Array[] = [];
    const report = { name: "refunds", explains: "" };
    const write = (chunk: string | Uint8Array) => {
      chunks.push(Buffer.from(chunk as Uint8Array));
      return Promise.resolve();
    };
    const rendering = renderXlsx({ report, columns, exponents: currencyDigits, write }, 3);
    await rendering.rows([...rows, ...rows]);
    await rendering.end(about);
    const { SheetNames, Sheets } = read(Buffer.concat(chunks));
    expect(SheetNames).toEqual(["refunds", "refunds 2", "refunds 3", "about"]);
    const first = SheetNames.map((name) =>
      utils.sheet_to_json<string[]>(Sheets[name]!, { header: 1 }).map(([cell]) => cell),
    );
    const notes = rows.map(([note]) => note);
    expect(first.slice(0, 3)).toEqual([
      ["note", ...notes.slice(0, 3)],
      ["note", notes[3], ...notes.slice(0, 2)],
      ["note", ...notes.slice(2), "sum jpy", "sum kwd", "sum usd"],
    ]);
  });

  test("holds any text, and runs none", async () => {
    const hostile = ["<&>\"'", "_x0041_", "\ud800", "a\nb\u0000", "\ufffe\uffff", "]]>", " padded "];
    const book = read(
      await render(
        "xlsx",
        hostile.map((text) => [text, ...rows[3]!.slice(1)]),
      ),
    );
    const sheet = book.Sheets["refunds"]!;
    expect(hostile.map((_, n) => (sheet[`A${n + 2}`] as { v: string }).v)).toEqual([
      "<&>\"'",
      "_x0041_",
      "\ufffd",
      "a\ufffdb\ufffd",
      "\ufffd\ufffd",
      "]]>",
      " padded ",
    ]);
  });
});
