/** A finite number in its shortest digits, without an exponent, as Postgres prints a `numeric` of them. Pure. */
export function plainDecimal(value: number): string {
  const text = String(value);
  if (!text.includes("e")) return text;
  const [mantissa = "", exponent = ""] = text.split("e");
  const sign = mantissa.startsWith("-") ? "-" : "";
  const [whole = "", fraction = ""] = mantissa.slice(sign.length).split(".");
  const digits = whole + fraction;
  // JavaScript writes an exponent only where the point lies outside of the digits.
  const point = whole.length + Number(exponent);
  return point > 0
    ? `${sign}${digits.padEnd(point, "0")}`
    : `${sign}0.${digits.padStart(digits.length - point, "0")}`;
}
