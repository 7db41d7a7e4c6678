const minDigits = 13;
const [space, hyphen, plus, dot, lowLine] = [32, 45, 43, 46, 95];

/**
 * Whether a text may hold a card number: 13 digits, spaces and hyphens in a row. A cheap first test, which nearly every
 * text without one fails. Reads the last of 13 places first: if no number can pass through it, none begins before the
 * next place, and 13 more are skipped.
 */
export function mayHoldCardNumber(text: string): boolean {
  let start = 0;
  while (start + minDigits <= text.length) {
    let place = start + minDigits - 1;
    while (place >= start && isOfNumber(text.charCodeAt(place))) place--;
    if (place < start) return true;
    start = place + 1;
  }
  return false;
}

const isOfNumber = (code: number): boolean => code <= 57 && (code >= 48 || code === hyphen || code === space);

/** The same for a JSON number. */
export const numberMayBeCard = (value: number): boolean => value >= 10 ** (minDigits - 1);

/**
 * The text with every card number masked but for its last four digits; the same text where there is none.
 *
 * A card number has 13 to 19 digits, in one piece or in groups: the first of four digits or more, the others of three
 * or more (the last may be shorter), with single spaces or single hyphens between them. It stands alone: part of a
 * word, of a phone number after its plus, of a decimal or of a UUID is none. It begins like a number of one of the card
 * networks and passes the Luhn check. Pure, idempotent, and linear in the length of the text, since any sender may
 * choose it.
 */
export function maskCardNumbers(text: string): string {
  if (!mayHoldCardNumber(text)) return text;
  const cards = findCards(text);
  if (cards.length === 0) return text;
  let masked = "";
  let from = 0;
  for (const { start, end } of cards) {
    masked += `${text.slice(from, start)}[card number ending ${lastDigits(text, end)}]`;
    from = end;
  }
  return masked + text.slice(from);
}

/** Two places in a text; the end is exclusive. */
interface Span {
  start: number;
  end: number;
}

type Run = Span;

/** One run of digits, or several with a separator between each two. */
type Card = Span;

/** The text between two masked cards. Characters outside it do not touch a number in it. */
type Gap = Span;

/** With 19 digits: four in the first group, three in the others, fewer in the last. */
const maxGroups = 6;

/** The card numbers of a text, in order. */
function findCards(text: string): Card[] {
  const cards: Card[] = [];
  /** Runs since the last card that may still begin a card once the text after them is masked. */
  let passed: Run[] = [];
  let gap: Gap = { start: 0, end: text.length };
  for (let run = runFrom(text, 0); run !== null;) {
    const card = cardFrom(text, run, gap);
    if (card === null) {
      passed.push(run);
      if (passed.length > 2 * maxGroups) passed = passed.slice(maxGroups);
      run = runFrom(text, run.end);
      continue;
    }
    // Masking a number may isolate card numbers before it, the nearest first.
    const revealed: Card[] = [];
    for (let next: Card | null = card; next !== null;) {
      revealed.push(next);
      next = lastCardOf(text, passed, { start: gap.start, end: next.start });
    }
    cards.push(...revealed.toReversed());
    passed = [];
    gap = { start: card.end, end: text.length };
    run = runFrom(text, card.end);
  }
  return cards;
}

/** The last card in a gap that begins with one of the passed runs. */
function lastCardOf(text: string, passed: readonly Run[], gap: Gap): Card | null {
  for (let n = passed.length - 1; n >= 0; n--) {
    const run = passed[n];
    if (run === undefined || run.end > gap.end) continue;
    const card = cardFrom(text, run, gap);
    if (card !== null) return card;
  }
  return null;
}

/** The last four digits before a place; the last group may have fewer. */
const lastDigits = (text: string, end: number): string =>
  text
    .slice(end - 8, end)
    .replaceAll(/[ -]/g, "")
    .slice(-4);

/** The next run of digits at or after a place. */
function runFrom(text: string, from: number): Run | null {
  let start = from;
  while (start < text.length && !isDigit(text.charCodeAt(start))) start++;
  return start === text.length ? null : { start, end: endOfRun(text, start) };
}

function endOfRun(text: string, start: number): number {
  let end = start;
  while (end < text.length && isDigit(text.charCodeAt(end))) end++;
  return end;
}

const isDigit = (code: number): boolean => code >= 48 && code <= 57;

const minGroup = 3;
const minFirstGroup = 4;
const maxDigits = 19;

/** The longest card number that begins with this run and fits into the gap; null where there is none. */
function cardFrom(text: string, run: Run, gap: Gap): Card | null {
  const { start } = run;
  let { end } = run;
  let digits = end - start;
  if (digits > maxDigits || !mayLead[text.charCodeAt(start) - 48]) return null;
  if (!beginsAlone(text, start, gap)) return null;
  let card = digits >= minDigits && endsAlone(text, end, gap) ? cardOf(text, start, end, digits) : null;
  const separator = text.charCodeAt(end);
  if (digits < minFirstGroup || !(separator === hyphen || separator === space)) return card;
  const isHyphened = separator === hyphen;
  if (isHyphened && isHyphenedBefore(text, start, gap)) return card;
  while (end + 1 < gap.end && text.charCodeAt(end) === separator) {
    const groupEnd = endOfRun(text, end + 1);
    const group = groupEnd - end - 1;
    digits += group;
    if (group === 0 || digits > maxDigits) break;
    end = groupEnd;
    const isWhole =
      digits >= minDigits && endsAlone(text, end, gap) && !(isHyphened && isHyphenedAfter(text, end, gap));
    if (isWhole) card = cardOf(text, start, end, digits) ?? card;
    // A shorter group can only be the last.
    if (group < minGroup) break;
  }
  return card;
}

function cardOf(text: string, start: number, end: number, digits: number): Card | null {
  if (!isIssued(leadingDigits(text, start), digits) || !passesLuhn(text, start, end)) return null;
  return { start, end };
}

function beginsAlone(text: string, start: number, gap: Gap): boolean {
  const before = codeBefore(text, start, gap);
  if (before === plus || isPartOfWord(before)) return false;
  return before !== dot || !isDigit(codeBefore(text, start - 1, gap));
}

function endsAlone(text: string, end: number, gap: Gap): boolean {
  const after = codeAfter(text, end, gap);
  if (isPartOfWord(after)) return false;
  return after !== dot || !isDigit(codeAfter(text, end + 1, gap));
}

/** Digits that a hyphen joins to more letters or digits are part of something else, such as a UUID. */
const isHyphenedBefore = (text: string, start: number, gap: Gap): boolean =>
  codeBefore(text, start, gap) === hyphen && isPartOfWord(codeBefore(text, start - 1, gap));

const isHyphenedAfter = (text: string, end: number, gap: Gap): boolean =>
  codeAfter(text, end, gap) === hyphen && isPartOfWord(codeAfter(text, end + 1, gap));

/** Beyond a gap's ends: a space, which is part of no word or number. */
const edge = space;

/** The code point of the character that ends at a place. */
function codeBefore(text: string, end: number, gap: Gap): number {
  if (end <= gap.start) return edge;
  const code = text.charCodeAt(end - 1);
  const isPair = code >= 0xdc00 && code <= 0xdfff && end - 2 >= gap.start;
  return isPair ? (text.codePointAt(end - 2) ?? edge) : code;
}

/** The code point of the character that begins at a place. */
const codeAfter = (text: string, start: number, gap: Gap): number =>
  start < gap.end ? (text.codePointAt(start) ?? edge) : edge;

/** Letters and digits of any script, and the underscore. */
function isPartOfWord(code: number): boolean {
  if (code >= 128) return /[\p{L}\p{N}]/u.test(String.fromCodePoint(code));
  const lower = code | 32;
  return isDigit(code) || (lower >= 97 && lower <= 122) || code === lowLine;
}

/** Ranges of the first four digits, with the shortest and the longest number (ISO/IEC 7812, as the networks use it). */
const issuers: readonly (readonly [from: number, to: number, shortest: number, longest: number])[] = [
  [2221, 2720, 16, 16], // Mastercard
  [3000, 3059, 14, 19], // Diners Club
  [3095, 3095, 14, 19], // Diners Club
  [3400, 3499, 15, 15], // American Express
  [3528, 3589, 16, 19], // JCB
  [3600, 3699, 14, 19], // Diners Club
  [3700, 3799, 15, 15], // American Express
  [3800, 3999, 14, 19], // Diners Club
  [4000, 4999, 16, 16], // Visa; 13 digits are no longer issued
  [4000, 4999, 19, 19], // Visa
  [5000, 5099, 13, 19], // Maestro
  [5100, 5599, 16, 16], // Mastercard
  [5600, 5899, 13, 19], // Maestro
  [6011, 6011, 16, 19], // Discover
  [6200, 6299, 16, 19], // UnionPay
  [6300, 6399, 13, 19], // Maestro
  [6440, 6599, 16, 19], // Discover
  [6700, 6799, 13, 19], // Maestro
  [8100, 8199, 16, 19], // UnionPay
];

/** For each first digit: whether any network's numbers begin with it. */
const mayLead = Array.from({ length: 10 }, (_, digit) =>
  issuers.some(([from, to]) => digit >= Math.floor(from / 1000) && digit <= Math.floor(to / 1000)),
);

const isIssued = (leading: number, digits: number): boolean =>
  issuers.some(
    ([from, to, shortest, longest]) => leading >= from && leading <= to && digits >= shortest && digits <= longest,
  );

/** The first four digits of a card. They stand together, since no first group is shorter. */
function leadingDigits(text: string, start: number): number {
  let number = 0;
  for (let place = start; place < start + minFirstGroup; place++) {
    number = number * 10 + text.charCodeAt(place) - 48;
  }
  return number;
}

/**
 * The Luhn check (ISO/IEC 7812-1, annex B) of the digits between two places. Nine of ten accidental numbers fail it.
 */
function passesLuhn(text: string, start: number, end: number): boolean {
  let sum = 0;
  let isDoubled = false;
  for (let place = end - 1; place >= start; place--) {
    const code = text.charCodeAt(place);
    if (!isDigit(code)) continue;
    const digit = (code - 48) * (isDoubled ? 2 : 1);
    sum += digit > 9 ? digit - 9 : digit;
    isDoubled = !isDoubled;
  }
  return sum % 10 === 0;
}

/**
 * Keys without free text, whose values must stay as they came: ids, codes, times, amounts, URLs, phone numbers and
 * e-mail addresses. A long number there is no card.
 */
const keptKeys = new Set([
  "id",
  "order_number",
  "email",
  "phone",
  "url",
  "sku",
  "code",
  "type",
  "kind",
  "status",
  "currency",
  "amount",
  "total",
  "subtotal",
  "price",
  "quantity",
]);
const keptEndings = /_(?:ids?|at|code|amount|url)$/;

/** Whether the values of this key are never masked. */
export const isNeverMasked = (key: string): boolean => keptKeys.has(key) || keptEndings.test(key);
