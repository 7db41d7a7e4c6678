/**
 * Calls `make` at the first call and returns the same promise from then on. Also for libraries that are slow to load
 * and that few commands use: `once(() => import("undici"))`.
 */
export function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => (made ??= make());
}
