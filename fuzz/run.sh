#!/usr/bin/env bash
# Fuzzes each target for a bounded time, as many side by side as there are processors, and ends by itself. Fails if
# an input breaks a promise.
#
#   fuzz/run.sh [seconds-per-target [target ...]]     default: 60, every target
#
# Starts from fuzz/corpus and leaves it as it is; what is found goes to fuzz/work (kept from run to
# run, not in the repository), inputs that fail to fuzz/artifacts. Needs the nightly compiler: libFuzzer comes with the
# targets, and the flags below are those that cargo-fuzz gives, which is needed for its tools only (README.md). Where
# there is none, it says so and ends with 77.
set -euo pipefail
cd "$(dirname "$0")"

seconds=${1:-60}
shift || true
all=(parse config transfer roles iprp guard open pem messages keys session state)
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=("${all[@]}")
for target in "${targets[@]}"; do
  [ -e "fuzz_targets/$target.rs" ] || {
    echo "fuzz: there is no target $target; those that there are: ${all[*]}" >&2
    exit 2
  }
done

cannot() {
  echo "fuzz: NOT RUN: $*" >&2
  exit 77
}

# Longest input of a target, bytes.
longest() {
  case $1 in
    parse) echo 1600 ;;
    config | pem) echo 2048 ;;
    transfer) echo 2048 ;;
    *) echo 1024 ;;
  esac
}

cargo +nightly --version >/dev/null 2>&1 ||
  cannot "there is no nightly compiler; 'rustup toolchain install nightly' brings it"
host=$(rustc -vV | sed -n 's/^host: //p')
coverage=(level=4 inline-8bit-counters pc-table trace-compares stack-depth)
flags=("-Cpasses=sancov-module" "${coverage[@]/#/-Cllvm-args=-sanitizer-coverage-}"
  --cfg=fuzzing -Zsanitizer=address -Cdebug-assertions)
# With the host named as the target, what only builds (macros, scripts) is built without all that.
CARGO_ENCODED_RUSTFLAGS=$(IFS=$'\x1f' && echo "${flags[*]}") \
  cargo +nightly build --release --locked --target "$host"
programs=${CARGO_TARGET_DIR:-target}/$host/release

# Fuzzes one target; says how it went in one piece, since others speak beside it.
fuzz() {
  local target=$1 options log=work/$1.log
  mkdir -p "work/$target" "corpus/$target" "artifacts/$target"
  options=(-max_total_time="$seconds" -max_len="$(longest "$target")" -timeout=20
    -rss_limit_mb=1024 -malloc_limit_mb=64 -print_final_stats=1 -artifact_prefix="artifacts/$target/")
  [ "$target" = config ] && options+=(-dict=config.dict)
  if "$programs/$target" "${options[@]}" "work/$target" "corpus/$target" >"$log" 2>&1; then
    echo "fuzz: $target, $seconds s
$(grep -E 'DONE' "$log" | tail -1)
$(grep -E '^stat::(number_of_executed_units|peak_rss_mb)' "$log")"
  else
    echo "fuzz: $target: FAILED
$(tail -60 "$log")"
    return 1
  fi
}

failed=()
declare -A running=()
# Waits for one of the targets that run.
one_ended() {
  local pid code=0
  wait -n -p pid "${!running[@]}" || code=$?
  [ "$code" = 0 ] || failed+=("${running[$pid]}")
  unset "running[$pid]"
}
# Each target in a process group of its own, which an end in the middle (Ctrl-C) ends as a whole.
set -m
trap 'for pid in "${!running[@]}"; do kill -- "-$pid" 2>/dev/null || true; done' EXIT
for target in "${targets[@]}"; do
  [ ${#running[@]} -lt "$(nproc)" ] || one_ended
  fuzz "$target" &
  running[$!]=$target
done
while [ ${#running[@]} -gt 0 ]; do one_ended; done
[ ${#failed[@]} -eq 0 ] || {
  echo "fuzz: FAILED: ${failed[*]}; the inputs are in fuzz/artifacts, fuzz/README.md says how to replay them" >&2
  exit 1
}
