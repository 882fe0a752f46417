#!/usr/bin/env bash
# Fuzzes each target for a bounded time and ends by itself. Fails if an input breaks a promise.
#
#   fuzz/run.sh [seconds-per-target [target ...]]     default: 60, every target
#
# Starts from fuzz/corpus and leaves it as it is; what is found goes to fuzz/work (kept from run to
# run, not in the repository), inputs that fail to fuzz/artifacts. Needs the nightly compiler and
# cargo-fuzz, which is installed below target/ if the machine has none. Where they cannot be had, it
# says so and ends with 77.
set -euo pipefail
cd "$(dirname "$0")"

seconds=${1:-60}
shift || true
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(parse config transfer roles iprp guard open pem messages session)
version=0.13.2
tools=$PWD/../target/tools
export PATH=$tools/bin:$PATH

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
if ! cargo fuzz --version >/dev/null 2>&1; then
  cargo install cargo-fuzz --version "$version" --locked --quiet --root "$tools" ||
    cannot "cargo-fuzz $version could not be installed"
fi
cargo +nightly fuzz build

failed=()
for target in "${targets[@]}"; do
  echo "fuzz: $target, $seconds s"
  mkdir -p "work/$target" "corpus/$target"
  options=(-max_total_time="$seconds" -max_len="$(longest "$target")" -timeout=20
    -rss_limit_mb=1024 -malloc_limit_mb=64 -print_final_stats=1)
  [ "$target" = config ] && options+=(-dict=config.dict)
  log=work/$target.log
  if cargo +nightly fuzz run "$target" "work/$target" "corpus/$target" -- "${options[@]}" >"$log" 2>&1; then
    grep -E 'DONE' "$log" | tail -1
    grep -E '^stat::(number_of_executed_units|peak_rss_mb)' "$log"
  else
    tail -60 "$log"
    failed+=("$target")
  fi
done
[ ${#failed[@]} -eq 0 ] || {
  echo "fuzz: FAILED: ${failed[*]}; the inputs are in fuzz/artifacts, fuzz/README.md says how to replay them" >&2
  exit 1
}
