import { randomBytes, scrypt, timingSafeEqual } from "node:crypto";
import { TallyhookError, UsageError } from "../../platform/errors.ts";
import { once } from "../../platform/once.ts";

/** N = 2^17, r = 8, p = 1, of OWASP's password storage cheat sheet: 128 MB and some 0.3 s a password. */
const cost = { log2N: 17, r: 8, p: 1 } as const;
const [saltBytes, hashBytes] = [16, 32];

/** Limits the work that a stranger can cause by a long password. */
const [leastLength, mostLength] = [12, 200] as const;

const commonPasswords = once(async () => {
  const { dictionary } = await import("@zxcvbn-ts/language-common");
  return new Set(dictionary["passwords-common"].map(String));
});

/** Throws `UsageError` for a password that is too short, too long, among the commonest, or the e-mail address. */
export async function assertStrong(password: string, email: string): Promise<void> {
  const length = Array.from(password).length;
  if (length < leastLength || length > mostLength) {
    throw new UsageError(
      `The password has ${length} characters. Use ${leastLength} to ${mostLength}: four words that do not belong ` +
        "together are easy to keep in mind.",
    );
  }
  const plain = password.toLowerCase();
  if ((await commonPasswords()).has(plain) || new Set(plain).size < 5) {
    throw new UsageError("The password is one of those that attackers try first. Use another one.");
  }
  const [name = ""] = email.split("@");
  if (plain.includes(email) || (name.length > 3 && plain.replaceAll(name, "").length < 8)) {
    throw new UsageError("The password is derived from the e-mail address. Use another one.");
  }
}

/** The text to store, with the parameters that check it: another cost does not make it useless. */
export async function hashPassword(password: string, log2N: number = cost.log2N): Promise<string> {
  const salt = randomBytes(saltBytes);
  const hash = await derive(password, { ...cost, log2N, salt });
  return ["scrypt", log2N, cost.r, cost.p, salt.toString("base64"), hash.toString("base64")].join("$");
}

/** Takes as long for a missing password (`stored` is null) as for a wrong one. */
export async function isPassword(password: string, stored: string | null): Promise<boolean> {
  const [, log2N, r, p, salt = "", hash = ""] = (stored ?? nobodys).split("$");
  const parameters = { log2N: Number(log2N), r: Number(r), p: Number(p) };
  const derived = await derive(password, { ...parameters, salt: Buffer.from(salt, "base64") });
  const isSame = timingSafeEqual(derived, Buffer.from(hash, "base64"));
  return isSame && stored !== null;
}

/** Derived from a random password, which is not kept. */
const nobodys = [
  "scrypt",
  cost.log2N,
  cost.r,
  cost.p,
  randomBytes(saltBytes).toString("base64"),
  randomBytes(hashBytes).toString("base64"),
].join("$");

interface Parameters {
  log2N: number;
  r: number;
  p: number;
  salt: Buffer;
}

/** More do not wait: the last of them would wait for a quarter of a minute. */
const mostWaiting = 50;

let waiting = 0;
let last: Promise<unknown> = Promise.resolve();

/** One at a time: each takes 128 MB, and a stranger decides how many are tried. Throws `TooManySignIns`. */
async function derive(password: string, parameters: Parameters): Promise<Buffer> {
  if (waiting >= mostWaiting) throw new TooManySignIns();
  waiting += 1;
  const derived = last.then(() => deriveNow(password, parameters)).finally(() => (waiting -= 1));
  last = derived.catch(() => {});
  return derived;
}

export class TooManySignIns extends TallyhookError {
  constructor() {
    super("Too many people are signing in. Try again in a minute.");
  }
}

const deriveNow = (password: string, { log2N, r, p, salt }: Parameters): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    const options = { N: 2 ** log2N, r, p, maxmem: 256 * 1024 * 1024 };
    scrypt(password.normalize("NFKC"), salt, hashBytes, options, (error, key) => {
      if (error === null) resolve(key);
      else reject(error);
    });
  });
