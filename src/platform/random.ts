/** A source of numbers in [0, 1). Code that needs randomness is given one, so that a seed repeats a run. */
export type Random = () => number;

/** Randomness for production use (jitter, sampling). Not for secrets: those come from `node:crypto`. */
export const systemRandom: Random = () => Math.random();

/** Seeded randomness whose state can be saved and restored. */
export type SeededRandom = Random & {
  words(): number[];
  /** Continues from what `words` returned. */
  resume(words: readonly number[]): void;
};

/** The same seed gives the same sequence on every platform (sfc32, seeded through xmur3). */
export function seededRandom(seed: number | string): SeededRandom {
  const next = hashWords(String(seed));
  let a = next();
  let b = next();
  let c = next();
  let d = next();
  const random = () => {
    const sum = (((a + b) | 0) + d) | 0;
    d = (d + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (c << 21) | (c >>> 11);
    c = (c + sum) | 0;
    return (sum >>> 0) / 2 ** 32;
  };
  // The first outputs of neighbouring seeds resemble each other.
  for (let i = 0; i < 12; i++) random();
  return Object.assign(random, {
    words: () => [a, b, c, d],
    resume(words: readonly number[]) {
      [a = 0, b = 0, c = 0, d = 0] = words;
    },
  });
}

function hashWords(text: string): () => number {
  let h = 1779033703 ^ text.length;
  for (let i = 0; i < text.length; i++) {
    h = Math.imul(h ^ text.charCodeAt(i), 3432918353);
    h = (h << 13) | (h >>> 19);
  }
  return () => {
    h = Math.imul(h ^ (h >>> 16), 2246822507);
    h = Math.imul(h ^ (h >>> 13), 3266489909);
    h ^= h >>> 16;
    return h >>> 0;
  };
}
