#!/usr/bin/env bash
# Runs a command with another date on this machine, for all that it starts (PostgreSQL, browsers, programs without their
# caller's environment), and for nothing else. Wants root, gcc and Linux.
#
#   test/support/at-date.sh '2028-02-29 23:40' npx vitest run test/reports --maxWorkers=1
#
# A library that adds to the clock is preloaded by /etc/ld.so.preload of a mount namespace of its own. Time goes on from
# there. What measures time that passes is left alone, which Debian's faketime does not do: under it PostgreSQL hangs.
set -euo pipefail

offset=$(($(date -d "$1 UTC" +%s) - $(date +%s)))
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
chmod 755 "$folder"

gcc -O2 -shared -fPIC -DOFFSET="$offset" -o "$folder/date.so" -x c - <<'C'
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *at) {
  int result = syscall(SYS_clock_gettime, clock, at);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) at->tv_sec += OFFSET;
  return result;
}

int gettimeofday(struct timeval *at, void *zone) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  at->tv_sec = now.tv_sec;
  at->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *at) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (at != NULL) *at = now.tv_sec;
  return now.tv_sec;
}
C

cp -a /etc "$folder/etc"
echo "$folder/date.so" > "$folder/etc/ld.so.preload"
unshare --mount bash -euc 'mount --make-rprivate /; mount --bind "$0/etc" /etc; exec "$@"' "$folder" "$@"
