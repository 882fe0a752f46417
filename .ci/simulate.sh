#!/usr/bin/env bash
# Simulates the pair with other seeds every day (spec/simulation.md). What fails prints the command that
# replays it. Ends within 5 minutes.
#
# BUMPLESS_BINARY names a `bumpless` that is there already; without it, one is built.
#
#   .ci/simulate.sh [seeds-of-the-small-pair [seeds-of-the-large-one]]     default: 240 of 60 s, 6 of 30 s
set -euo pipefail
cd "$(dirname "$0")/.."

bumpless=${BUMPLESS_BINARY:-${CARGO_TARGET_DIR:-target}/quick/bumpless}
[ -n "${BUMPLESS_BINARY:-}" ] || cargo build --profile quick --locked -p bumpless-cli
first=$(($(date -u +%s) / 86400 * 1000))
small=(sim --seed "$first" --seeds "${1:-240}" --time 60)
large=(sim --seed "$first" --seeds "${2:-6}" --time 30 --size large)
for seeds in "${small[*]}" "${large[*]}"; do
  echo "bumpless $seeds"
  # shellcheck disable=SC2086 # words of our own
  "$bumpless" $seeds --jobs "$(nproc)"
done
