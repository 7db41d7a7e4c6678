/** No 0, O, 1, I: order numbers and coupon codes are read aloud. 32 characters, so that 8 of them hold 40 bits. */
export const readableAlphabet = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ";
const halfBits = 20;
const halfMask = 2 ** halfBits - 1;

/**
 * The n-th order number (8 alphanumeric characters, spec, Limits): a permutation of 40 bits under `keys`, so that numbers look
 * random and never repeat without a list of those in use. n from 0 to 2^40 − 1.
 */
export function orderNumber(n: number, keys: readonly number[]): string {
  let left = Math.floor(n / 2 ** halfBits) & halfMask;
  let right = n & halfMask;
  for (const key of keys) {
    const mixed = Math.imul(right ^ key, 0x9e3779b1) >>> (32 - halfBits);
    [left, right] = [right, left ^ mixed];
  }
  let text = "";
  for (const half of [left, right]) {
    for (let shift = halfBits - 5; shift >= 0; shift -= 5)
      text += readableAlphabet[(half >>> shift) & 31];
  }
  return text;
}
