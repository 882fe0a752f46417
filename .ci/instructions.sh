#!/usr/bin/env bash
# Counts the instructions of the cores' hot paths (valgrind's callgrind) and compares them with those kept
# in bench/instructions.tsv: more than 3 % above fails. With BUMPLESS_WRITE=1, keeps what was counted.
#
# A count is the difference of two runs, so what a program costs to start is not in it. It is the same on
# every run of one build; another compiler or C library may move it.
set -euo pipefail
# Without it a count that fails inside $( ) is an empty one, which is less than any kept.
shopt -s inherit_errexit
cd "$(dirname "$0")/.."

if ! command -v valgrind >/dev/null; then
  echo "instructions: valgrind is not installed (apt-get install valgrind)" >&2
  exit 77
fi

kept=bench/instructions.tsv
few=20 many=220
cargo build --quiet --release --locked --package bumpless-bench --example hot_paths
program=${CARGO_TARGET_DIR:-target}/release/examples/hot_paths

count() {
  valgrind --tool=callgrind --callgrind-out-file=/dev/null "$program" "$1" "$2" 2>&1 |
    awk '/Collected/ { print $NF; found = 1 } END { exit !found }' || {
    echo "instructions: valgrind has not counted '$1': run it to see why: valgrind --tool=callgrind $program '$1' $2" >&2
    return 1
  }
}

counted=$(
  "$program" | while IFS=$'\t' read -r steps name; do
    low=$(count "$name" $few)
    high=$(count "$name" $many)
    printf '%s\t%s\n' $(((high - low) / ((many - few) * steps))) "$name"
  done
)

if [ "${BUMPLESS_WRITE:-}" = 1 ]; then
  printf '%s\n' "$counted" >"$kept"
fi

printf '%12s %12s  %s\n' counted kept 'a step'
printf '%s\n' "$counted" | awk -F '\t' -v kept="$kept" '
  function compare(one, thousand) {
    printf "%s: %.2f of what one costs (at most 2)\n", thousand, count[thousand] / count[one]
    if (count[thousand] > 2 * count[one]) bad = 1
  }
  function limit(most, name) {
    printf "%s: %d (at most %d)\n", name, count[name], most
    if (count[name] > most) bad = 1
  }
  BEGIN { while ((getline line < kept) > 0) { split(line, part, "\t"); old[part[2]] = part[1] } }
  {
    verdict = ""
    if (!($2 in old)) { verdict = "NOT KEPT: run with BUMPLESS_WRITE=1"; bad = 1 }
    else if ($1 > old[$2] * 1.03) { verdict = "MORE"; bad = 1 }
    else if ($1 < old[$2] * 0.97) { verdict = "fewer: keep it with BUMPLESS_WRITE=1" }
    printf "%12d %12d  %s  %s\n", $1, old[$2], $2, verdict
    count[$2] = $1
  }
  END {
    for (name in old) if (!(name in count)) { print name ": NOT COUNTED"; missing = 1 }
    if (missing) exit 1
    compare("128 bytes there and back, 1 channel", "128 bytes there and back, 1,000 channels")
    compare("a turn of a node, 1 application", "a turn of a node, 1,000 applications")
    # 60 ns at 2.5 GHz and two instructions a cycle (spec/reception.md, V-25).
    limit(300, "decide on a frame of a flood, 64 flows")
    # 200 ns without and 1 us with cryptography for replicating, handing on and discarding each, at the same rate (spec/iprp.md, I-66).
    limit(1000, "iPRP: replicate on two networks, not sealed")
    limit(3000, "iPRP: replicate, hand on and discard, not sealed")
    limit(3000, "iPRP: replicate, hand on and discard of a group, not sealed")
    limit(3000, "iPRP: replicate, hand on and discard segments of TCP, not sealed")
    # Sent and kept, handed on, answered, the answer taken.
    limit(4000, "iPRP: send in standby, keep, hand on and answer, not sealed")
    limit(5000, "iPRP: replicate on two networks")
    limit(15000, "iPRP: replicate, hand on and discard")
    exit bad
  }'
