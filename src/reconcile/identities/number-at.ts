/**
 * SQL for a number in a JSON object, exact; null where there is none. Content is kept as it came, so a field may hold
 * anything, and a cast that fails would stop the check.
 */
export const numberAt = (object: string, key: string): string =>
  `case when jsonb_typeof(${object}->'${key}') = 'number' then cast(${object}->>'${key}' as numeric) end`;

/** The same for a small whole number of days or months. */
export const smallNumberAt = (object: string, key: string): string =>
  `(select n::int from (select ${numberAt(object, key)} as n) given where n between 1 and 3660)`;
