#!/usr/bin/env bash
# Where clocks jump forward at midnight, cron-parser leaves out the whole day of a daily schedule; croner and cron do not.
#
# Seen with cron-parser 5.10.3, croner 11.0.1 and cron 4.4.0. In Santiago de Chile the 6th of September 2026 begins at
# 01:00. Of "0 0 * * *" croner and cron make a run at that hour; cron-parser goes from the 5th to the 7th. An hour that
# is missing at another time of the day cron-parser moves: 02:30 in Berlin on the day of the change is 03:30. So is it in
# Cairo, Beirut and Havana, and a scheduler that asks cron-parser for its next time (BullMQ's does) misses that night.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init --yes >/dev/null
npm install --silent --no-audit --no-fund cron-parser@5.10.3 croner@11.0.1 cron@4.4.0 luxon@3.7.2

cat >run.mjs <<'JS'
import assert from "node:assert/strict";
import { CronTime } from "cron";
import { CronExpressionParser } from "cron-parser";
import { Cron } from "croner";
import { DateTime } from "luxon";

const readers = {
  "cron-parser 5.10.3": (cron, zone, from) => {
    const times = CronExpressionParser.parse(cron, { tz: zone, currentDate: from });
    return [1, 2, 3].map(() => times.next().toDate());
  },
  "croner 11.0.1": (cron, zone, from) => new Cron(cron, { timezone: zone, paused: true }).nextRuns(3, from),
  "cron 4.4.0": (cron, zone, from) => {
    const time = new CronTime(cron, zone);
    let last = DateTime.fromJSDate(from);
    return [1, 2, 3].map(() => (last = time.getNextDateFrom(last, zone)).toJSDate());
  },
};
const local = (at, zone) => at.toLocaleString("sv-SE", { timeZone: zone, dateStyle: "short", timeStyle: "short" });

const changes = [
  ["America/Santiago", "2026-09-04T12:00:00Z", "2026-09-06"],
  ["Africa/Cairo", "2026-04-22T12:00:00Z", "2026-04-24"],
  ["Asia/Beirut", "2026-03-27T12:00:00Z", "2026-03-29"],
  ["America/Havana", "2026-03-06T12:00:00Z", "2026-03-08"],
];
for (const [zone, from, day] of changes) {
  for (const [name, read] of Object.entries(readers)) {
    const runs = read("0 0 * * *", zone, new Date(from)).map((at) => local(at, zone));
    console.log(`${zone}, ${name}: ${runs.join(", ")}`);
    assert.equal(runs.some((run) => run.startsWith(day)), !name.startsWith("cron-parser"), `${name} on ${day}`);
  }
}
const [, moved] = readers["cron-parser 5.10.3"]("30 2 * * *", "Europe/Berlin", new Date("2026-03-27T12:00:00Z"));
console.log(`Europe/Berlin, cron-parser 5.10.3, 02:30 on the day of the change: ${local(moved, "Europe/Berlin")}`);
assert.equal(local(moved, "Europe/Berlin"), "2026-03-29 03:30");
JS
node run.mjs
