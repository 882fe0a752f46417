#!/usr/bin/env bash
# Runs the unsafe code, and what threads share, under Miri and under the address and the thread
# sanitizer. Needs the nightly compiler; installs its components where rustup can.
#
#   .ci/sanitize.sh [miri] [address] [thread]     default: all three
#
# With BUMPLESS_SLICE=K/3, Miri gets the Kth of its three parts; what is left out is printed.
#
# Each takes less than a quarter of an hour on two cores (SANITIZE_SECONDS bounds each step). What cannot be
# had is said, and ends it with 77.
set -euo pipefail
cd "$(dirname "$0")/.."
. .ci/bounded.sh
trap end_bounded EXIT

wanted=("$@")
[ ${#wanted[@]} -gt 0 ] || wanted=(miri address thread)
seconds=${SANITIZE_SECONDS:-900}
host=$(rustc -vV | sed -n 's/^host: //p')
failed=()
case ${BUMPLESS_SLICE:-0/3} in
  [012]/3) ;;
  *) echo "sanitize: BUMPLESS_SLICE is 0/3, 1/3 or 2/3, not $BUMPLESS_SLICE" >&2; exit 2 ;;
esac

cannot() {
  echo "sanitize: NOT RUN: $*" >&2
  exit 77
}

# Runs a step with its name, and goes on if it fails.
step() {
  local name=$1
  shift
  echo "sanitize: $name"
  bounded "$seconds" "$@" || failed+=("$name (exit $?)")
}

# Runs a step if it is the part that is wanted, or all are.
part() {
  local number=$1
  shift
  if [ "${BUMPLESS_SLICE:-$number/3}" != "$number/3" ]; then
    echo "sanitize: $1: left out, BUMPLESS_SLICE is $BUMPLESS_SLICE"
  else
    step "$@"
  fi
}

cargo +nightly --version >/dev/null 2>&1 ||
  cannot "there is no nightly compiler; 'rustup toolchain install nightly' brings it"

# Miri executes no system call of a socket, of ppoll, of scheduling or of CLOCK_BOOTTIME: of net-linux it
# gets what builds and reads the kernel's structures, the rest is for the sanitizers.
under_miri() {
  local run=(cargo +nightly miri test --quiet --locked --target-dir target/miri)
  rustup component add --toolchain nightly miri rust-src >/dev/null 2>&1 || true
  cargo +nightly miri --version >/dev/null 2>&1 || cannot "the nightly compiler has no component miri"
  export MIRIFLAGS=-Zmiri-disable-isolation
  part 0 "miri: atomic-box, mailbox" "${run[@]}" -p bumpless-atomic-box -p bumpless-mailbox --lib
  part 1 "miri: hand-over of states" "${run[@]}" -p bumpless-transfer --lib handover::
  part 2 "miri: net-linux without system calls" "${run[@]}" -p bumpless-net-linux --lib -- \
    udp::send:: udp::receive:: sys:: ping::tests::
  echo "sanitize: miri: skipped: system calls of net-linux, node, lab and bench (Miri has none of them);" \
    "base, wire, redundancy and the rest of transfer (they forbid unsafe)"
}

# $1 is address or thread. The standard library is built with the sanitizer, too.
under_sanitizer() {
  rustup component add --toolchain nightly rust-src >/dev/null 2>&1 || true
  [ -d "$(rustc +nightly --print sysroot)/lib/rustlib/src/rust/library" ] ||
    cannot "the nightly compiler has no component rust-src"
  export RUSTFLAGS=-Zsanitizer=$1
  local run=(cargo +nightly test --quiet --locked -Zbuild-std --target "$host" --target-dir "target/$1")
  step "$1: atomic-box, mailbox, hand-over of states" "${run[@]}" \
    -p bumpless-atomic-box -p bumpless-mailbox -p bumpless-transfer --lib
  step "$1: net-linux" "${run[@]}" -p bumpless-net-linux --lib --tests
  step "$1: node" "${run[@]}" -p bumpless-node --lib --tests
  unset RUSTFLAGS
  echo "sanitize: $1: skipped: tests of lab and cli (kill, prctl and getppid: no memory passes)," \
    "and of bench (filters and namespaces of the kernel, for measuring only)"
}

# Plant, witnesses and controllers of the demonstration; what the sanitizer says is in files, since the
# processes end in ways of their own. Built to run several times slower, they cannot keep the promises of
# the demonstration that are about time (its exit status is 1 then); those about the whole run they must.
whole_nodes() {
  local said=$PWD/target/thread/said
  rm -rf "$said" && mkdir -p "$said"
  export RUSTFLAGS=-Zsanitizer=thread TSAN_OPTIONS="log_path=$said/log exitcode=0"
  step "thread: whole nodes" bash -c '"$@" >"$0" || [ $? = 1 ]' "$said/promises" \
    cargo +nightly run --quiet --locked -Zbuild-std --target "$host" \
    --target-dir target/thread -p bumpless-cli -- demo --report "$said/report.html"
  unset RUSTFLAGS TSAN_OPTIONS
  cat "$said/promises"
  awk '/^[^ ]/ { whole = /^the whole run$/ } whole && /^  held/ { held++ } whole && /^  BROKEN/ { broken++ }
    END { exit !held || broken }' "$said/promises" ||
    failed+=("thread: whole nodes (a promise about the whole run)")
  if compgen -G "$said/log*" >/dev/null; then
    cat "$said"/log*
    failed+=("thread: whole nodes (what the sanitizer said is above)")
  fi
}

for what in "${wanted[@]}"; do
  case $what in
    miri) under_miri ;;
    address) under_sanitizer address ;;
    thread) under_sanitizer thread && whole_nodes ;;
    *) echo "sanitize: no such thing: $what (miri, address, thread)" >&2 && exit 1 ;;
  esac
done
[ ${#failed[@]} -eq 0 ] || {
  printf 'sanitize: FAILED: %s\n' "${failed[@]}" >&2
  exit 1
}
echo "sanitize: done: ${wanted[*]}"
