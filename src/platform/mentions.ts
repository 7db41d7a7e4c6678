/**
 * Whether a text contains one of these names, ignoring case. Only whole words count, so that an order number is not
 * found in an amount, a time, or another id.
 */
export function mentioning(names: readonly string[]): (text: string) => boolean {
  const wanted = names.filter((name) => name !== "").map((name) => name.toLowerCase());
  return (text) => {
    const lower = text.toLowerCase();
    return wanted.some((name) => {
      for (let at = lower.indexOf(name); at >= 0; at = lower.indexOf(name, at + 1)) {
        const end = at + name.length;
        const isAmount = /^\d+$/.test(name) && amountEnd.test(lower.slice(end, end + 6));
        const isWithin =
          endsInWord.test(lower.slice(Math.max(0, at - 4), at)) || beginsInWord.test(lower.slice(end, end + 4));
        if (!isWithin && !isAmount) return true;
      }
      return false;
    });
  };
}

/** Ends in a letter or digit, or in one followed by a sign that occurs within ids, amounts and times. */
const endsInWord = /[\p{L}\p{N}_][.,:@+-]?$/u;
const beginsInWord = /^[.,:@+-]?[\p{L}\p{N}_]/u;
/** A currency after a number. */
const amountEnd = /^ [a-z]{3}(?![a-z])/;
