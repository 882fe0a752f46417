#!/usr/bin/env bash
# Simulates the pair with other seeds every day (spec/simulation.md). What fails prints the command that
# replays it. Ends within 5 minutes.
#
#   .ci/simulate.sh [seeds-of-the-small-pair [seeds-of-the-large-one]]     default: 240 of 60 s, 6 of 30 s
set -euo pipefail
cd "$(dirname "$0")/.."

cargo build --profile quick --locked -p bumpless-cli
first=$(($(date -u +%s) / 86400 * 1000))
small=(sim --seed "$first" --seeds "${1:-240}" --time 60)
large=(sim --seed "$first" --seeds "${2:-6}" --time 30 --size large)
for seeds in "${small[*]}" "${large[*]}"; do
  echo "bumpless $seeds"
  # shellcheck disable=SC2086 # words of our own
  "${CARGO_TARGET_DIR:-target}/quick/bumpless" $seeds --jobs "$(nproc)"
done
