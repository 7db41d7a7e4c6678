const months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const weekdays = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

interface Field {
  min: number;
  max: number;
  /** Names that stand for `min`, `min + 1`, … */
  names: readonly string[];
}

const fields: readonly Field[] = [
  { min: 0, max: 59, names: [] },
  { min: 0, max: 23, names: [] },
  { min: 1, max: 31, names: [] },
  { min: 1, max: 12, names: months },
  { min: 0, max: 7, names: weekdays },
];

/** Whether a text is a cron expression of five fields: `*`, numbers, names, lists, ranges and steps. */
export function isCronExpression(text: string): boolean {
  const parts = text.trim().split(/\s+/);
  return (
    parts.length === fields.length &&
    fields.every((field, i) => (parts[i] ?? "").split(",").every((item) => isItem(item, field)))
  );
}

function isItem(item: string, field: Field): boolean {
  const [, range = "", step] = /^([^/]+)(?:\/(\d+))?$/.exec(item) ?? [];
  if (step !== undefined && (Number(step) < 1 || Number(step) > field.max)) return false;
  if (range === "*") return true;
  const bounds = range.split("-").map((bound) => toNumber(bound, field));
  const [from, to = from, ...rest] = bounds;
  return rest.length === 0 && from != null && to != null && from <= to;
}

/** Null when it is out of the field's range. */
function toNumber(text: string, { min, max, names }: Field): number | null {
  const named = names.indexOf(text.toLowerCase());
  if (named >= 0) return min + named;
  if (!/^\d{1,2}$/.test(text)) return null;
  const number = Number(text);
  return number >= min && number <= max ? number : null;
}
