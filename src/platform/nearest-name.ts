/**
 * The known name that `name` is most likely a misspelling of; null when none is near. A third of the letters wrong, or
 * more than `atMost` of them, is too many for a misspelling.
 */
export function nearestName(
  name: string,
  known: Iterable<string>,
  { atMost = Infinity }: { atMost?: number } = {},
): string | null {
  let nearest: string | null = null;
  let nearestDistance = Math.min(Math.floor(name.length / 3), atMost) + 1;
  for (const candidate of known) {
    // At least as many letters are to be inserted or deleted.
    if (Math.abs(name.length - candidate.length) >= nearestDistance) continue;
    const distance = editDistance(name, candidate);
    if (distance < nearestDistance) [nearest, nearestDistance] = [candidate, distance];
  }
  return nearest;
}

/** The number of letters to insert, delete or change, or of neighbours to swap (optimal string alignment). */
function editDistance(a: string, b: string): number {
  let beforePrevious: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const change = a[row - 1] === b[column - 1] ? 0 : 1;
      const isSwapped = a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      current.push(
        Math.min(
          (previous[column] ?? 0) + 1,
          (current[column - 1] ?? 0) + 1,
          (previous[column - 1] ?? 0) + change,
          isSwapped ? (beforePrevious[column - 2] ?? Infinity) + 1 : Infinity,
        ),
      );
    }
    [beforePrevious, previous] = [previous, current];
  }
  return previous[b.length] ?? 0;
}
