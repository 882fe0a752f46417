#!/usr/bin/env bash
# The program for 32-bit ARM Linux (Cortex-A7 class): cross-built, its tests and the program itself under QEMU's user
# mode, which emulates the processor and passes system calls on to this machine's kernel.
#
#   .ci/device.sh [cores] [linux] [program]     default: all three
#
# With BUMPLESS_SLICE=K/6 it does the Kth sixth of it, with fewer cases of property tests and, of the program, as it is
# built for tests; else everything, with the program as it is built for the device (profile `device`): size, memory and
# time to start with it. BUMPLESS_WRITE=1 keeps what was seen of each part in docs/device. What cannot run there
# is printed with the reason, and counted. Where the compiler, the C library or QEMU is missing, it says so and ends with 77.
set -euo pipefail
cd "$(dirname "$0")/.."
. .ci/bounded.sh

parts=(cores linux program)
wanted=("$@")
[ ${#wanted[@]} -gt 0 ] || wanted=("${parts[@]}")
cores=(atomic-box base wire transfer redundancy secure iprp guard)
linux=(net-linux guarded-file config controller node)
sliced=1
case ${BUMPLESS_SLICE:-} in
  '') sliced= ;;
  0/6) wanted=(cores) cores=(atomic-box base wire transfer) ;;
  1/6) wanted=(cores) cores=(redundancy) ;;
  2/6) wanted=(cores) cores=(secure iprp guard) ;;
  3/6) wanted=(linux) linux=(net-linux guarded-file config) ;;
  4/6) wanted=(linux) linux=(controller node) ;;
  5/6) wanted=(program) ;;
  *) echo "device: BUMPLESS_SLICE is one of 0/6 to 5/6, not $BUMPLESS_SLICE" >&2; exit 2 ;;
esac

target=armv7-unknown-linux-gnueabihf
libraries=/usr/arm-linux-gnueabihf
emulated=(qemu-arm -L "$libraries")
export CARGO_TARGET_ARMV7_UNKNOWN_LINUX_GNUEABIHF_LINKER=arm-linux-gnueabihf-gcc
export CC_armv7_unknown_linux_gnueabihf=arm-linux-gnueabihf-gcc
export CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=false
[ -z "$sliced" ] || export PROPTEST_CASES=${PROPTEST_CASES:-32}
# Of one emulated process; the longest test that is not left out takes a third of it beside other work.
most=${DEVICE_SECONDS:-600}

cannot() {
  echo "device: NOT RUN: $*" >&2
  exit 77
}
command -v qemu-arm >/dev/null || cannot "there is no qemu-arm (Debian: qemu-user)"
command -v arm-linux-gnueabihf-gcc >/dev/null || cannot "there is no compiler (Debian: gcc-arm-linux-gnueabihf)"
[ -e "$libraries/lib/libc.so.6" ] || cannot "there is no C library in $libraries (Debian: libc6-dev-armhf-cross)"
if ! [ -d "$(rustc --print sysroot)/lib/rustlib/$target" ]; then
  timeout 120 rustup target add "$target" >/dev/null 2>&1 || cannot "rustup has no target $target"
fi

work=$(mktemp -d)
trap 'end_bounded; rm -rf "$work"' EXIT
failed=()
say() {
  echo "$*" | tee -a "$work/$part.txt"
}

# What does not run there: crate, test target, test (or `*` for all), `never` or in the `whole` run alone, why.
left_out() {
  cat <<'TABLE'
bumpless-net-linux|bumpless_net_linux|hop::tests::a_port_that_nobody_has_is_told_by_its_host_and_belongs_to_its_probe|never|QEMU writes who has found an ICMP error to a wrong place
bumpless-net-linux|bumpless_net_linux|multicast::tests::a_membership_is_held_until_it_is_left_and_of_one_source_beside_another|never|QEMU has no MCAST_JOIN_SOURCE_GROUP
bumpless-net-linux|loopback|what_the_kernel_drops_for_want_of_room_is_told|never|QEMU tells the first number of SO_MEMINFO alone
bumpless-net-linux|loopback|what_the_kernel_did_not_grant_is_said_in_one_line_each|never|QEMU tells the first number of SO_MEMINFO alone
bumpless-controller|bumpless_controller|modbus::tests::secure::|never|handshakes of TLS, built for tests and emulated, exceed their time beside other work
bumpless-node|telling|log_and_status_tell_the_wires_session_and_what_weakens_the_node|never|QEMU tells the first number of SO_MEMINFO alone
bumpless-node|refused|*|never|it lists threads, of which QEMU has some that are over
bumpless-node|allocation|*|never|its pair, built for tests and emulated, does not keep leases of 100 ms
bumpless-redundancy|exhaustive|*|never|it takes minutes, and was not waited for
bumpless-config|any_text|*|never|it takes minutes, and was not waited for
bumpless-net-linux|failing_networks|*|whole|takes most of a minute
TABLE
}

# Builds the tests of the crates and runs each test target in its package's folder; prints what came of it.
tests() {
  local build=(cargo test --quiet --locked --target "$target" --no-run --message-format=json) crate
  for crate in "$@"; do build+=(--package "$crate"); done
  "${build[@]}" >"$work/built" || {
    failed+=("the build of the tests of $*")
    return
  }
  python3 - "$work/built" >"$work/executables" <<'PYTHON'
import json, os, sys
for line in open(sys.argv[1]):
    message = json.loads(line)
    if message.get("executable") and message.get("profile", {}).get("test"):
        folder = os.path.dirname(message["manifest_path"])
        print(message["target"]["name"], folder, message["executable"], sep="\t")
PYTHON
  [ -s "$work/executables" ] || failed+=("the build of the tests of $* has made none")
  while IFS=$'\t' read -r name folder executable; do
    run_tests "$name" "$folder" "$executable"
  done <"$work/executables"
}

# One test target.
run_tests() {
  local name=$1 folder=$2 executable=$3 skip=() crate code=0 of target_of test when why
  crate=bumpless-${folder##*/}
  while IFS='|' read -r of target_of test when why; do
    [ "$of/$target_of" = "$crate/$name" ] || continue
    [ "$when" = never ] || [ -n "$sliced" ] || continue
    say "device: left out: $crate $name $test: $why"
    [ "$test" != '*' ] || return 0
    skip+=(--skip "$test")
  done < <(left_out)
  bounded "$most" env -C "$folder" CARGO_MANIFEST_DIR="$folder" "${emulated[@]}" "$executable" ${skip[@]+"${skip[@]}"} \
    >"$work/log" 2>&1 </dev/null || code=$?
  local count
  count=$(sed -n 's/^test result: ok\. \([0-9]*\) passed.*/\1/p' "$work/log")
  if [ "$code" != 0 ] || [ -z "$count" ]; then
    tail -n 40 "$work/log"
    failed+=("$crate $name (exit $code)")
    return 0
  fi
  targets=$((targets + 1)) passed=$((passed + count))
  say "device: $crate $name: $count tests"
}

# Seeds of the small pair and scenarios, whose traces are those of x86-64.
traces() {
  local program=$1 kept=crates/proof/sim/traces.tsv hash world seen same=0 all=0
  while IFS=$'\t' read -r hash world; do
    all=$((all + 1))
    # Exit status 1 is a violation, which some scenarios are there to show: its trace counts all the same.
    # shellcheck disable=SC2086 # words of our own
    seen=$("${emulated[@]}" "$program" sim --json $world </dev/null || true)
    if grep -q "\"trace_hash\": *\"$hash\"" <<<"$seen"; then
      same=$((same + 1))
    else
      echo "device: another trace than on x86-64: bumpless sim $world" >&2
    fi
  done < <(
    awk -F '[\t ]' -v last="$2" '$2 == "--seed" && $3 <= last && $5 == "small"' "$kept"
    grep -- '--scenario' "$kept" | awk -v every="$3" 'NR % every == 0'
  )
  [ "$same" = "$all" ] && [ "$all" -gt 0 ] || failed+=("traces: $same of $all as on x86-64")
  say "device: traces: $same of $all as on x86-64"
}

# How far iPRP comes: QEMU passes on netlink sockets of routes, and has none of netfilter, which hands captured packets over.
iprp() {
  local program=$1 said code=0
  unshare --net true 2>/dev/null || {
    say "device: left out: iprp: may not make network namespaces"
    return 0
  }
  mkdir "$work/iprp"
  printf '%s\n' '[security]' 'keys = ["grid.key"]' '[[network]]' 'ind = 10' 'prefix = "10.1.0.0/24"' '[[network]]' \
    'ind = 11' 'prefix = "10.2.0.0/24"' '[[monitor]]' 'protocol = "udp"' 'port = 4713' >"$work/iprp/iprp.toml"
  "${emulated[@]}" "$program" key new "$work/iprp/grid.key" >/dev/null
  # shellcheck disable=SC2016 # for the shell inside
  said=$(unshare --net bash -c '
    ip link set lo up
    for network in 1 2; do
      ip link add "here$network" type veth peer name "there$network"
      ip addr add "10.$network.0.1/24" dev "here$network" nodad
      ip link set "here$network" up && ip link set "there$network" up
    done
    "$@" iprp check '"$work"'/iprp/iprp.toml && timeout 60 "$@" iprp run '"$work"'/iprp/iprp.toml' \
    - "${emulated[@]}" "$program" 2>&1) || code=$?
  if ! grep -q 'this host can run it' <<<"$said"; then
    printf '%s\n' "$said" >&2
    failed+=("iprp check")
  elif grep -q 'cannot capture packets.*os error 93' <<<"$said"; then
    say "device: iprp check: this host can run it; run comes to the packets: QEMU has no netlink socket of netfilter"
  elif [ "$code" = 124 ]; then
    say "device: iprp check: this host can run it; run runs"
  else
    printf '%s\n' "$said" >&2
    failed+=("iprp run (exit $code)")
  fi
}

# Kilobytes resident at most.
resident() {
  python3 -c 'import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)' "$@"
}

# Milliseconds from the start to the end, the shortest of ten.
duration() {
  python3 -c 'import subprocess, sys, time
def once():
    begun = time.monotonic()
    subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.monotonic() - begun
print(round(1000 * min(once() for _ in range(10))))' "$@"
}

# What the program takes, beside an empty one: QEMU translates what runs and keeps it, so these are bounds from above.
sizes() {
  local program=$1 empty=$work/empty
  echo 'int main(void) { return 0; }' | arm-linux-gnueabihf-gcc -O -o "$empty" -x c -
  say "device: program: $(stat -c %s "$program") bytes"
  say "device: check of a configuration: $(resident "${emulated[@]}" "$program" check examples/quadruple-tank.toml) kB resident" \
    "at most, an empty program $(resident "${emulated[@]}" "$empty") kB"
  say "device: --version: $(duration "${emulated[@]}" "$program" --version) ms, an empty program" \
    "$(duration "${emulated[@]}" "$empty") ms"
}

whole_program() {
  local profile=device folder=device seeds=20 every=1 pair
  if [ -n "$sliced" ]; then profile=dev folder=debug seeds=2 every=12; fi
  cargo build --quiet --locked --target "$target" --profile "$profile" --package bumpless-cli || {
    failed+=("the build of the program")
    return
  }
  local program=${CARGO_TARGET_DIR:-target}/$target/$folder/bumpless
  [ -n "$sliced" ] || sizes "$program"
  traces "$program" "$seeds" "$every"
  iprp "$program"
  if pair=$(bash .ci/device-pair.sh "${emulated[@]}" "$program"); then
    say "$pair"
  else
    failed+=("the pair")
  fi
}

for part in "${wanted[@]}"; do
  passed=0 targets=0
  case $part in
    cores) tests "${cores[@]/#/bumpless-}" ;;
    linux) tests "${linux[@]/#/bumpless-}" ;;
    program) whole_program ;;
    *) echo "device: no such part: $part (cores, linux, program)" >&2 && exit 2 ;;
  esac
  say "device: $part: $passed tests in $targets targets," \
    "$(grep -c '^device: left out' "$work/$part.txt" || true) left out; $target under $(qemu-arm --version | sed -n '1s/ (.*//p')"
done
[ ${#failed[@]} -eq 0 ] || {
  printf 'device: FAILED: %s\n' "${failed[@]}" >&2
  exit 1
}
if [ "${BUMPLESS_WRITE:-}" = 1 ]; then
  mkdir -p docs/device
  for part in "${wanted[@]}"; do cp "$work/$part.txt" docs/device/; done
fi
