const dayMs = 86_400_000;

/** The same time of day, so many days later; Saturdays and Sundays (UTC) do not count. */
export function businessDaysAfter(start: Date, days: number): Date {
  let date = start;
  for (let left = days; left > 0;) {
    date = new Date(date.getTime() + dayMs);
    if (date.getUTCDay() !== 0 && date.getUTCDay() !== 6) left -= 1;
  }
  return date;
}

/** The first midnight (UTC) after a time. */
export function nextMidnight(time: Date): Date {
  return new Date((Math.floor(time.getTime() / dayMs) + 1) * dayMs);
}
