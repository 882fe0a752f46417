#!/usr/bin/env bash
# Compares the trace hashes of seeds and scenarios with those kept in crates/proof/sim/traces.tsv: a change of structure
# leaves every one as it was. With BUMPLESS_WRITE=1, keeps what was seen. BUMPLESS_BINARY names a program that is
# built already.
set -euo pipefail
cd "$(dirname "$0")/.."

kept=crates/proof/sim/traces.tsv
program=${BUMPLESS_BINARY:-}
if [ -z "$program" ]; then
  cargo build --quiet --profile quick --locked --package bumpless-cli
  program=${CARGO_TARGET_DIR:-target}/quick/bumpless
fi
export program

worlds() {
  seq -f '--seed %.0f --size small' 1 200
  seq -f '--seed %.0f --size large --time 20' 1 10
  for scenario in scenarios/*.toml; do
    printf -- '--scenario %s\n' "$scenario"
  done
}

# Exit status 1 is a violation, which some scenarios are there to show: its trace counts all the same.
trace() {
  local hash
  hash=$("$program" sim --json "$@" | sed -n 's/.*"trace_hash": *"\([0-9a-f]*\)".*/\1/p' | head -n 1)
  printf '%s\t%s\n' "${hash:-none}" "$*"
}
export -f trace

seen=$(worlds | xargs -P "$(nproc)" -I '{}' bash -c 'trace {} || true' | sort -k 2)
if grep -q '^none' <<<"$seen"; then
  echo "traces: no trace hash of $(grep -c '^none' <<<"$seen") worlds, the first: $(grep -m 1 '^none' <<<"$seen")" >&2
  exit 1
fi
if [ "${BUMPLESS_WRITE:-}" = 1 ]; then
  printf '%s\n' "$seen" >"$kept"
fi
if ! diff <(printf '%s\n' "$seen") "$kept"; then
  echo "traces: they differ from those kept in $kept. A change of structure leaves them; for another, say why in the commit and keep them with BUMPLESS_WRITE=1" >&2
  exit 1
fi
echo "traces: $(wc -l <"$kept") worlds, each as kept"
