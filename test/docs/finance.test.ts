import { execFile, spawnSync } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { minorDigits } from "../../src/platform/money.ts";
import { closeMonth } from "../../src/parts/reports/close/close-month.ts";
import { ask } from "../reports/ask.ts";
import { letTimePass } from "../reports/sandbox-history.ts";
import { mirrorSales } from "../reports/shop.ts";
import { isInstalled } from "../support/ledgers.ts";
import { useTestDatabase } from "../support/use-database.ts";

const run = promisify(execFile);
const page = await readFile(new URL("../../docs/finance.md", import.meta.url), "utf8");
const [, recipes = ""] = page.split("\n## Into a ledger\n");
const commandsFor = (program: string): string =>
  new RegExp(`^\\*\\*${program}\\*\\*.*?^\`\`\`sh\n(.*?)^\`\`\``, "ms").exec(recipes)?.[1] ?? "";

const database = useTestDatabase();
const timeZone = "Europe/Berlin";
const accounts = {
  clearing: "Assets:Clearing",
  sales: "Income:Sales",
  refunds: "Income:Refunds",
  chargebacks: "Expenses:Chargebacks",
};
const currencies = ["usd", "kwd", "jpy", "huf", "irr", "zzz"];
/** `account currency` in lower case → debit less credit in minor units. */
type Balances = Record<string, bigint>;
let folder: string;
let expected: Balances;
let entries: number;

beforeAll(async () => {
  const { db } = database;
  folder = await mkdtemp(join(tmpdir(), "tallyhook-ledgers-"));
  await mirrorSales(
    db,
    currencies.flatMap((currency, n) => [
      {
        nth: 3 * n,
        at: `2026-10-0${n + 1}T22:30:00Z`,
        amount: 1_234_567 + n,
        currency,
        status: "partially_refunded",
        updatedAt: "2026-10-30T10:00:00Z",
        refunds: [{ at: "2026-10-30T10:00:00Z", amount: 505 + n }],
      },
      { nth: 3 * n + 1, at: `2026-10-0${n + 1}T10:00:00Z`, amount: 5, currency },
      {
        nth: 3 * n + 2,
        at: "2026-10-12T10:00:00Z",
        amount: 1_001,
        currency,
        status: "chargeback",
        saleStatus: "chargeback",
        updatedAt: "2026-10-31T22:30:00Z",
      },
    ]),
  );
  await letTimePass(db);
  const reason = "an exercise";
  await closeMonth(db, { month: "2026-10", timeZone, accounts, reason, by: "anna" });
  const { rows } = await ask(db, "journal", {
    from: "2026-10-01",
    to: "2026-10-31",
    timeZone,
    accounts,
  });
  entries = new Set(rows.map(({ number }) => number)).size;
  expected = sumsOf(
    rows.map(({ account, currency, debit, credit }) => [
      `${account} ${currency}`,
      BigInt(debit ?? 0) - BigInt(credit ?? 0),
    ]),
  );
});
afterAll(() => rm(folder, { recursive: true, force: true }));

function sumsOf(amounts: readonly (readonly [string, bigint])[]): Balances {
  const sums: Balances = {};
  for (const [key, amount] of amounts) sums[key] = (sums[key] ?? 0n) + amount;
  return Object.fromEntries(Object.entries(sums).filter(([, sum]) => sum !== 0n));
}

/** What the recipe of this name prints, in an empty folder, with the program as `tallyhook`. */
async function printedBy(program: string): Promise<string> {
  const commands = commandsFor(program);
  expect(commands).toContain("tallyhook report journal");
  const script = `set -eu\ntallyhook() { "$NODE" "$PROGRAM" "$@"; }\n${commands}`;
  const { stdout } = await run("bash", ["-c", script], {
    cwd: folder,
    env: {
      PATH: process.env["PATH"],
      HOME: folder,
      LANG: "C.UTF-8",
      NODE: process.execPath,
      PROGRAM: inject("program"),
      DATABASE_URL: database.url,
      TALLYHOOK_TIME_ZONE: timeZone,
    },
  });
  return stdout;
}

/** A decimal number in a commodity such as `USD` or `"ZZZ.MINOR"`, in minor units by the report's table. */
function minorOf(account: string, number: string, commodity: string): readonly [string, bigint] {
  const [currency = ""] = commodity.replaceAll('"', "").toLowerCase().split(".");
  const digits = minorDigits(currency) ?? 0;
  const [whole = "", fraction = ""] = number.split(".");
  expect(fraction.replace(/0+$/, "").length).toBeLessThanOrEqual(digits);
  return [`${account} ${currency}`, BigInt(whole + fraction.slice(0, digits).padEnd(digits, "0"))];
}

/** The lines of `balance`: amounts, one below the other, the last of them beside the account. */
function balancesOf(printed: string): Balances {
  const found: (readonly [string, bigint])[] = [];
  let amounts: [string, string][] = [];
  for (const line of printed.split("\n")) {
    const [, number, commodity, account] = /^\s*(-?[\d.,]+) ("[^"]+"|[A-Z.]+)(?:  (\S.*))?$/.exec(line) ?? [];
    if (number === undefined || commodity === undefined) continue;
    amounts.push([number, commodity]);
    if (account === undefined) continue;
    found.push(...amounts.map(([one, of]) => minorOf(account, one, of)));
    amounts = [];
  }
  return sumsOf(found);
}

test("the clearing account moves as month-end says, in each currency", async () => {
  expect(Object.keys(expected)).toHaveLength(4 * currencies.length);
  const days = { from: "2026-10-01", to: "2026-10-31", timeZone };
  const { rows } = await ask(database.db, "month-end", days);
  expect(rows.map(({ currency, cumulative_gross_closing: closing }) => [currency, BigInt(closing ?? "")])).toEqual(
    currencies.toSorted().map((code) => [code, expected[`Assets:Clearing ${code}`]]),
  );
});

describe("the page's recipes take the journal in, to the last minor unit, in currencies of 0, 2, 3 and unknown decimals", () => {
  test.skipIf(!isInstalled("ledger"))("ledger", async () => {
    const printed = await printedBy("ledger 3");
    expect(balancesOf(printed)).toEqual(expected);
  });

  test.skipIf(!isInstalled("hledger"))("hledger, with one transaction for each entry", async () => {
    const printed = await printedBy("hledger");
    expect(balancesOf(printed)).toEqual(expected);
    const { stdout } = await run("hledger", ["-f", "2026-10.ledger", "stats"], {
      cwd: folder,
      env: { ...process.env, LANG: "C.UTF-8" },
    });
    expect(Number(/^Transactions +: (\d+)/m.exec(stdout)?.[1])).toBe(entries);
  });

  test.skipIf(!isInstalled("bean-check"))("beancount", async () => {
    const printed = await printedBy("beancount");
    const found = [...printed.matchAll(/^(\S+) +(-?[\d.]+) +([A-Z.]+)$/gm)].map(
      ([, account = "", number = "", commodity = ""]) => minorOf(account, number, commodity),
    );
    expect(sumsOf(found)).toEqual(expected);
  });

  test.skipIf(!isInstalled("soffice"))("a spreadsheet", async () => {
    await printedBy("A spreadsheet");
    const [head = "", ...lines] = (await readFile(join(folder, "2026-10.csv"), "utf8")).trim().split("\n");
    const names = head.split(",");
    const found = lines.flatMap((line) => {
      const cells = line.split(",");
      const cell = (name: string): string => cells[names.indexOf(name)] ?? "";
      // The sums below the rows have no account.
      if (cell("account") === "") return [];
      const [key, debit] = minorOf(cell("account"), cell("debit"), cell("currency"));
      const [, credit] = minorOf(cell("account"), cell("credit"), cell("currency"));
      return [[key, debit - credit] as const];
    });
    expect(sumsOf(found)).toEqual(expected);
  });
});

test("an account that the program cannot have is refused by its name, with what it takes", async () => {
  const made = spawnSync(
    process.execPath,
    [
      inject("program"),
      "report",
      "journal",
      "--from",
      "2026-10",
      "--format",
      "beancount",
      "--accounts",
      await accountsFile({ ...accounts, clearing: "1200" }),
    ],
    {
      encoding: "utf8",
      cwd: folder,
      env: { PATH: process.env["PATH"], DATABASE_URL: database.url, TALLYHOOK_TIME_ZONE: timeZone },
    },
  );
  expect(made.status).toBe(64);
  expect(made.stderr).toContain('Beancount cannot have the account "1200"');
});

async function accountsFile(map: typeof accounts): Promise<string> {
  const path = join(folder, "accounts.json");
  await writeFile(path, JSON.stringify(map));
  return path;
}
