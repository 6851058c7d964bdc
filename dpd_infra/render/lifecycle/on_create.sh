#!/usr/bin/env bash
# HyperPod runs this on every new node. It runs on_create_main.sh beside it and keeps a log where HyperPod's agent ships it from.
#
# Environment, for tests alone: LIFECYCLE_ROOT stands before every path, LIFECYCLE_LOG_GRACE is how long a failed node waits (seconds).
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
readonly here
readonly log="${LIFECYCLE_ROOT:-}/var/log/provision/provisioning.log"
readonly grace="${LIFECYCLE_LOG_GRACE:-60}"

mkdir -p "$(dirname "$log")"
touch "$log"

say() {
  printf '%s on_create.sh: %s\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$*" | tee -a "$log"
}

say "start"
status=0
bash "$here/on_create_main.sh" 2>&1 | tee -a "$log" || status=$?
if ((status != 0)); then
  # A failed node is taken away at once: without the wait its log would be lost.
  say "on_create_main.sh failed with status $status; waiting ${grace} s for the log to be shipped"
  sync
  sleep "$grace"
  exit 1
fi
say "done"
