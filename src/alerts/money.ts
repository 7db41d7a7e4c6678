/**
 * An amount as people read it, `1234.50 USD`: minor units by ISO 4217, exactly. A currency that is not known is shown
 * in minor units, and says so. Pure.
 */
export function moneyText(amountMinor: number, currency: string): string {
  const code = currency.toUpperCase();
  const digits = minorDigits(code);
  if (digits === null) return `${amountMinor} minor units of ${code}`;
  const sign = amountMinor < 0 ? "-" : "";
  const text = String(Math.abs(amountMinor)).padStart(digits + 1, "0");
  const whole = text.slice(0, text.length - digits);
  return `${sign}${whole}${digits === 0 ? "" : `.${text.slice(-digits)}`} ${code}`;
}

const known: ReadonlySet<string> = new Set(Intl.supportedValuesOf("currency"));
/** Making a format costs more than a message does. */
const digitsOf = new Map<string, number>();

function minorDigits(code: string): number | null {
  if (!known.has(code)) return null;
  let digits = digitsOf.get(code);
  if (digits === undefined) {
    const format = new Intl.NumberFormat("en", { style: "currency", currency: code });
    digits = format.resolvedOptions().maximumFractionDigits ?? 2;
    digitsOf.set(code, digits);
  }
  return digits;
}
