/** "1 event", "2 events": a number with its noun. `many` where the plural is not made with an s. */
export function counted(n: number | bigint | string, one: string, many = `${one}s`): string {
  return `${n} ${String(n) === "1" ? one : many}`;
}
