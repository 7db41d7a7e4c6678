const minDigits = 13;

/** Whether a text may hold a card number at all. Nearly none does, so this is all that most of them cost. */
export const mayHoldCardNumber = (text: string): boolean =>
  text.length >= minDigits && /[\d -]{13}/.test(text);

/** The same of a number. */
export const mayBeCardNumber = (value: number): boolean => value >= 10 ** (minDigits - 1);

/**
 * The text with every card number masked but for its last four digits; the very same text where there is none.
 * A card number has 13 to 19 digits, whole or in groups of four and more that single spaces or single hyphens part,
 * stands alone (a part of a word, of a phone number after its plus, of a fraction or of a UUID is none), begins like
 * an issuer's and passes Luhn's test. Pure, idempotent.
 */
export function maskCardNumbers(text: string): string {
  if (!mayHoldCardNumber(text)) return text;
  // A number that is masked may leave another one standing alone.
  for (let before = text; ;) {
    const masked = maskOnce(before);
    if (masked === before) return masked;
    before = masked;
  }
}

interface DigitGroup {
  digits: string;
  start: number;
  /** Exclusive. */
  end: number;
}

function maskOnce(text: string): string {
  const groups = Array.from(text.matchAll(/\d+/g), ({ 0: digits, index: start }): DigitGroup => ({
    digits,
    start,
    end: start + digits.length,
  }));
  let masked = "";
  let from = 0;
  for (let first = 0; first < groups.length; first++) {
    const card = cardFrom(text, groups, first);
    if (card === null) continue;
    masked += `${text.slice(from, card.start)}[card number ending ${card.digits.slice(-4)}]`;
    from = card.end;
    first = card.last;
  }
  return masked + text.slice(from);
}

const minGroup = 3;
const minFirstGroup = 4;
const maxDigits = 19;

/** The longest card number that begins with this group. */
function cardFrom(
  text: string,
  groups: readonly DigitGroup[],
  first: number,
): (DigitGroup & { last: number }) | null {
  const group = groups[first];
  if (group === undefined || !beginsAlone(text, group.start)) return null;
  const { start } = group;
  let { digits, end } = group;
  let card =
    isCardNumber(digits) && endsAlone(text, end) ? { digits, start, end, last: first } : null;
  const separator = text[end];
  const isHyphened = separator === "-";
  if (digits.length < minFirstGroup || !(isHyphened || separator === " ")) return card;
  if (isHyphened && isHyphenedBefore(text, start)) return card;
  for (let last = first + 1; last < groups.length; last++) {
    const next = groups[last];
    if (next === undefined || next.start !== end + 1 || text[end] !== separator) break;
    digits += next.digits;
    end = next.end;
    if (digits.length > maxDigits) break;
    const isWhole = endsAlone(text, end) && !(isHyphened && isHyphenedAfter(text, end));
    if (isWhole && isCardNumber(digits)) card = { digits, start, end, last };
    // Only the last group may be shorter.
    if (next.digits.length < minGroup) break;
  }
  return card;
}

const beginsAlone = (text: string, start: number): boolean =>
  !/[\p{L}\p{N}_+]$|\d\.$/u.test(text.slice(Math.max(0, start - 2), start));

const endsAlone = (text: string, end: number): boolean =>
  !/^[\p{L}\p{N}_]|^\.\d/u.test(text.slice(end, end + 2));

/** Groups that hyphens join to more than a card number are something else, such as a UUID. */
const isHyphenedBefore = (text: string, start: number): boolean =>
  /[\p{L}\p{N}_]-$/u.test(text.slice(Math.max(0, start - 3), start));

const isHyphenedAfter = (text: string, end: number): boolean =>
  /^-[\p{L}\p{N}_]/u.test(text.slice(end, end + 3));

/** By their first digits and their lengths (ISO/IEC 7812, as the networks use it). */
const issued: readonly RegExp[] = [
  /^4(?:\d{15}|\d{18})$/, // Visa; 13 digits are no longer issued
  /^(?:5[1-5]\d\d|222[1-9]|22[3-9]\d|2[3-6]\d\d|27[01]\d|2720)\d{12}$/, // Mastercard
  /^3[47]\d{13}$/, // American Express
  /^3(?:0[0-59]|[689]\d)\d{11,16}$/, // Diners Club
  /^35(?:2[89]|[3-8]\d)\d{12,15}$/, // JCB
  /^(?:6011|64[4-9]\d|65\d\d)\d{12,15}$/, // Discover
  /^(?:62|81)\d{14,17}$/, // UnionPay
  /^(?:50|5[6-8]|63|67)\d{11,17}$/, // Maestro
];

const isCardNumber = (digits: string): boolean =>
  digits.length <= maxDigits && issued.some((range) => range.test(digits)) && passesLuhn(digits);

/** The test of ISO/IEC 7812-1, annex B: nine of ten mistyped or accidental numbers fail it. */
function passesLuhn(digits: string): boolean {
  let sum = 0;
  for (let n = 0; n < digits.length; n++) {
    const digit = Number(digits[digits.length - 1 - n]);
    const doubled = n % 2 === 1 ? digit * 2 : digit;
    sum += doubled > 9 ? doubled - 9 : doubled;
  }
  return sum % 10 === 0;
}
