import { type Random, seededRandom } from "../../../platform/random.ts";

/** Values that must look random and still repeat under a seed. */
export interface Ids {
  uuid(): string;
  orderNumber(): string;
  /** Digits, as processors number their transactions. */
  processorId(): string;
  authorizationCode(): string;
  signingSecret(): string;
  /** Ten unambiguous characters. */
  couponCode(): string;
  /** The position of the streams, for a saved state. */
  mark(): IdsMark;
  resume(mark: IdsMark): void;
}

export interface IdsMark {
  orders: number;
  random: number[];
  secrets: number[];
}

/**
 * One seeded stream for objects that calls create. Deliveries, faults and traffic draw from their own streams, so that
 * their timing cannot change an id.
 */
export function createIds(seed: string): Ids {
  const random = seededRandom(`${seed}/ids`);
  const keyRandom = seededRandom(`${seed}/order-numbers`);
  const secretRandom = seededRandom(`${seed}/secrets`);
  const keys = Array.from({ length: 4 }, () => Math.floor(keyRandom() * 2 ** 32));
  let orders = 0;
  return {
    uuid: () => uuidFrom(random),
    orderNumber: () => orderNumber(orders++, keys),
    processorId: () => String(Math.floor(random() * 9e10) + 1e10),
    authorizationCode: () => String(Math.floor(random() * 9e5) + 1e5),
    signingSecret: () => `whsec_${randomHex(secretRandom, 32)}`,
    couponCode: () => readableText(random, 10),
    mark: () => ({ orders, random: random.words(), secrets: secretRandom.words() }),
    resume(mark) {
      orders = mark.orders;
      random.resume(mark.random);
      secretRandom.resume(mark.secrets);
    },
  };
}

const hexDigits = Buffer.from("0123456789abcdef", "latin1");
const uuidText = Buffer.from("00000000-0000-0000-0000-000000000000", "latin1");
/** The positions of the 32 digits in the text of a UUID. */
const digitPlaces = Array.from(uuidText.keys()).filter((at) => uuidText[at] !== 0x2d);

/** A version 4 UUID. It is written into one buffer: a string joined from parts would keep its parts in memory. */
function uuidFrom(random: Random): string {
  for (let word = 0; word < 4; word++) {
    let bits = (random() * 2 ** 32) >>> 0;
    if (word === 1) bits = (bits & 0xffff0fff) | 0x4000;
    if (word === 2) bits = (bits & 0x3fffffff) | 0x80000000;
    for (let digit = 0; digit < 8; digit++) {
      uuidText[digitPlaces[word * 8 + digit] ?? 0] = hexDigits[(bits >>> (28 - 4 * digit)) & 15] ?? 0;
    }
  }
  return uuidText.toString("latin1");
}

function readableText(random: Random, length: number): string {
  const character = () => readableAlphabet[Math.floor(random() * readableAlphabet.length)] ?? "";
  return Array.from({ length }, character).join("");
}

function randomHex(random: Random, bytes: number): string {
  return Buffer.from(Array.from({ length: bytes }, () => Math.floor(random() * 256))).toString("hex");
}

/**
 * Without 0, O, 1 and I, since order numbers and coupon codes are read aloud. With 32 characters, 8 of them hold 40
 * bits.
 */
const readableAlphabet = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ";
const halfBits = 20;
const halfMask = 2 ** halfBits - 1;

/**
 * The n-th order number, 8 alphanumeric characters. It is a permutation of 40 bits under `keys`, so that numbers look
 * random and never repeat, without a list of those in use. n is 0 to 2^40 − 1.
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
    for (let shift = halfBits - 5; shift >= 0; shift -= 5) text += readableAlphabet[(half >>> shift) & 31];
  }
  return text;
}
