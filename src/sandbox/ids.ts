import type { Random } from "../platform/random.ts";
import { seededRandom } from "../platform/random.ts";
import { orderNumber } from "./rules/order-numbers.ts";

/** Everything that must look random and yet repeat under a seed. */
export interface Ids {
  uuid(): string;
  orderNumber(): string;
  /** Digits, as processors number their transactions. */
  processorId(): string;
  authorizationCode(): string;
  signingSecret(): string;
}

const hexByte = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

/**
 * One stream of chance for what calls create. Deliveries, faults and traffic draw from streams of their own,
 * so that their timing cannot change an id.
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
  };
}

/** A version 4 UUID. */
function uuidFrom(random: Random): string {
  const a = (random() * 2 ** 32) >>> 0;
  const b = (((random() * 2 ** 32) >>> 0) & 0xffff0fff) | 0x4000;
  const c = (((random() * 2 ** 32) >>> 0) & 0x3fffffff) | 0x80000000;
  const d = (random() * 2 ** 32) >>> 0;
  return `${word(a)}-${half(b >>> 16)}-${half(b)}-${half(c >>> 16)}-${half(c)}${word(d)}`;
}

function half(bits: number): string {
  return `${hexByte[(bits >>> 8) & 255]}${hexByte[bits & 255]}`;
}

function word(bits: number): string {
  return half(bits >>> 16) + half(bits);
}

function randomHex(random: Random, bytes: number): string {
  return Array.from({ length: bytes }, () => hexByte[Math.floor(random() * 256)]).join("");
}
