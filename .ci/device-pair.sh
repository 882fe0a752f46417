#!/usr/bin/env bash
# A pair, its witness and the simulated plant as processes of one command, on loopback addresses: whether a role is
# taken, outputs are written, and another goes on with them when the primary is killed. It waits for what is to happen,
# not for a time; after DEVICE_SECONDS (default 300) for each step it has failed.
#
#   .ci/device-pair.sh bumpless                           or, under emulation:
#   .ci/device-pair.sh qemu-arm -L /usr/arm-linux-gnueabihf bumpless
set -euo pipefail

[ $# -gt 0 ] || {
  echo "device-pair: name the command: .ci/device-pair.sh bumpless" >&2
  exit 2
}
# In a network of its own where that is permitted.
if [ -z "${DEVICE_PAIR_INSIDE:-}" ] && unshare --net true 2>/dev/null; then
  DEVICE_PAIR_INSIDE=1 exec unshare --net bash -c 'ip link set lo up && exec bash "$0" "$@"' "$0" "$@"
fi

most=${DEVICE_SECONDS:-300}
work=$(mktemp -d)
pids=()
ended() {
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  wait 2>/dev/null || true
  rm -rf "$work"
}
trap ended EXIT

cat >"$work/pair.toml" <<'TOML'
[pair]
name = "device"

# For processes that are emulated, and wait for a processor besides.
[timing]
heartbeat_ms = 20
lease_ms = 1000
start_wait_ms = 2500

[security]
keys = ["device.key"]

[[network]]
name = "A"
bandwidth_mbit = 1000

[[network]]
name = "B"
bandwidth_mbit = 1000

[[node]]
name = "left"
addresses = { A = "127.0.7.21:4700", B = "127.0.8.21:4700" }
control = "left.sock"

[[node]]
name = "right"
addresses = { A = "127.0.7.22:4700", B = "127.0.8.22:4700" }
control = "right.sock"

[[reference]]
name = "witness-a"
kind = "witness"
network = "A"
address = "127.0.7.23:4710"

[[reference]]
name = "witness-b"
kind = "witness"
network = "B"
address = "127.0.8.23:4710"

[[group]]
name = "tanks"
nodes = ["left", "right"]
references = ["witness-a", "witness-b"]

[[application]]
name = "tank"
group = "tanks"
kind = "quadruple_tank"
channel = 1
period_ms = 100

[application.field]
address = "127.0.7.30:5502"
TOML

fail() {
  echo "device-pair: $*" >&2
  for log in "$work"/*.log; do tail -n 5 "$log" | sed "s|^|${log##*/}: |" >&2; done
  exit 1
}

# Waits until a command succeeds; $1 says what it is.
until_it_is() {
  local what=$1 end=$((SECONDS + most))
  shift
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $end ] || fail "not within $most s: $what"
    sleep 0.2
  done
}

bumpless=("${@:1:$#-1}" "$(realpath "${@: -1}")")
start() {
  local name=$1
  shift
  (cd "$work" && exec "${bumpless[@]}" "$@") >"$work/$name.log" 2>&1 &
  pids+=($!)
  eval "$name=$!"
}
# Outputs that the plant has taken from one writer, 0 is `left` and 1 is `right`.
taken() {
  grep -c "\"type\":\"write\".*\"writer\":$1,.*\"accepted\":true" "$work/plant.jsonl" || true
}
at_least() {
  [ "$(taken "$1")" -ge "$2" ]
}
redundant() {
  (cd "$work" && "${bumpless[@]}" status pair.toml --node "$1")
}
somebody_writes() {
  at_least 0 20 || at_least 1 20
}

(cd "$work" && "${bumpless[@]}" key new device.key >/dev/null && "${bumpless[@]}" check pair.toml >/dev/null)
start plant plant --listen 127.0.7.30:5502 --check-epoch --log plant.jsonl
start witness witness --key device.key --listen 127.0.7.23:4710 --listen 127.0.8.23:4710
until_it_is "the plant answers" test -s "$work/plant.log"
begun=${EPOCHREALTIME/./}
start left run pair.toml --node left
start right run pair.toml --node right
until_it_is "a node writes outputs" somebody_writes
writing=$(((${EPOCHREALTIME/./} - begun) / 1000))
until_it_is "left has a partner" redundant left
until_it_is "right has a partner" redundant right

memory=$(cat "/proc/$left/status" "/proc/$right/status" | awk '/VmHWM/ { if ($2 > most) most = $2 } END { print most }')
last=$(grep '"type":"write"' "$work/plant.jsonl" | tail -n 1)
case $last in
  *'"writer":0,'*) primary=left pid=$left heir=1 ;;
  *) primary=right pid=$right heir=0 ;;
esac
before=$(taken $heir)
# shellcheck disable=SC2154 # set by start
kill -9 "$pid"
wait "$pid" 2>/dev/null || true
until_it_is "the other node goes on with the outputs after $primary was killed" at_least $heir $((before + 20))
# A late write of the one before is refused; what is taken is never of an older epoch.
sed -n '/"type":"write".*"accepted":true/s/.*"epoch":\([0-9]*\).*/\1/p' "$work/plant.jsonl" | sort -n -c 2>/dev/null ||
  fail "the plant has taken an output of an older epoch"
echo "device-pair: 20 outputs after $writing ms; $primary was killed, the other went on: $(taken 0) outputs of left," \
  "$(taken 1) of right, epochs ascending; at most $memory kB resident"
