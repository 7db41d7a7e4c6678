/**
 * The number of decimals of an amount in minor units, by ISO 4217 as of 2026, and amounts as people read them. Alerts,
 * reports, the command line and the database's `reports.currencies` all use this table. Intl has the decimals of daily
 * life (CLDR), not those of ISO 4217: for HUF, COP, IDR, PKR, IQD and others, amounts would be wrong by a factor of 100
 * or 1,000. Funds codes (clf, uyi, che, …) and the accounting dinar (xad) are on the list of ISO 4217, and so here.
 */
const codesByDigits: Readonly<Record<number, string>> = {
  0: "bif clp djf gnf isk jpy kmf krw pyg rwf ugx uyi vnd vuv xaf xof xpf",
  2:
    "aed afn all amd aoa ars aud awg azn bam bbd bdt bmd bnd bob bov brl bsd btn bwp byn bzd cad cdf che chf chw cny " +
    "cop cou crc cup cve czk dkk dop dzd egp ern etb eur fjd fkp gbp gel ghs gip gmd gtq gyd hkd hnl htg huf idr ils " +
    "inr irr jmd kes kgs khr kpw kyd kzt lak lbp lkr lrd lsl mad mdl mga mkd mmk mnt mop mru mur mvr mwk mxn mxv myr " +
    "mzn nad ngn nio nok npr nzd pab pen pgk php pkr pln qar ron rsd rub sar sbd scr sdg sek sgd shp sle sos srd ssp " +
    "stn svc syp szl thb tjs tmt top try ttd twd tzs uah usd usn uyu uzs ved ves wst xad xcd xcg yer zar zmw zwg",
  3: "bhd iqd jod kwd lyd omr tnd",
  4: "clf uyw",
};

/** Withdrawn since 2010, with the decimals they had: an import may contain old orders. */
const withdrawnByDigits: Readonly<Record<number, string>> = {
  0: "byr",
  2: "ang bgn cuc eek hrk ltl lvl mro sll std uss vef zmk zwl",
};

/**
 * Decimals by code, in lower case as the service writes it. Codes that ISO 4217 lists without a minor unit (gold,
 * special drawing rights, test codes) are left out.
 */
export const currencyDigits: ReadonlyMap<string, number> = new Map(
  [codesByDigits, withdrawnByDigits].flatMap((table) =>
    Object.entries(table).flatMap(([digits, codes]) => codes.split(" ").map((code) => [code, Number(digits)] as const)),
  ),
);

/**
 * The decimals of a currency, in upper or lower case; null where they are not known. Never guesses. `table`: for a
 * closed month, the decimals it was closed with.
 */
export const minorDigits = (currency: string | null, table = currencyDigits): number | null =>
  table.get(currency?.toLowerCase() ?? "") ?? null;

/** Whole minor units: a `bigint`, a whole number, or PostgreSQL's text of one. */
export type MinorUnits = bigint | number | string;

/** Minor units as a decimal number, exact at any size: `-1234` with 2 decimals → `-12.34`. */
export function decimalText(minor: string, digits: number): string {
  if (digits === 0) return minor;
  const sign = minor.startsWith("-") ? "-" : "";
  const padded = minor.slice(sign.length).padStart(digits + 1, "0");
  return `${sign}${padded.slice(0, -digits)}.${padded.slice(-digits)}`;
}

/**
 * Minor units as a number without its currency: `12.34`. Where the decimals are unknown, the amount stays in minor
 * units, with that unit: `1234 minor units`.
 */
export function amountWithoutCode(minor: string, currency: string | null, table = currencyDigits): string {
  const digits = minorDigits(currency, table);
  return digits === null ? `${minor} minor units` : decimalText(minor, digits);
}

/**
 * An amount as people read it: `12.34 USD`; `1234 minor units of ZZZ` where the currency's decimals are unknown. A row
 * of the mirror may lack the amount or the currency; the text then names the missing one. Never throws.
 */
export function moneyText(minor: MinorUnits | null, currency: string | null, table = currencyDigits): string {
  const whole = wholeMinor(minor);
  const code = currency?.toUpperCase() ?? "";
  if (whole === null) return code === "" ? "an unknown amount" : `an unknown amount of ${code}`;
  if (code === "") return `${whole} minor units of an unknown currency`;
  const isKnown = minorDigits(code, table) !== null;
  return `${amountWithoutCode(whole, code, table)} ${isKnown ? code : `of ${code}`}`;
}

function wholeMinor(minor: MinorUnits | null): string | null {
  if (minor === null) return null;
  try {
    return BigInt(minor).toString();
  } catch {
    return null;
  }
}
