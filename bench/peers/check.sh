#!/usr/bin/env bash
# Holds the conversation of README.md with every peer in bench/peers/bin over loopback, or with those named:
#   bench/peers/check.sh [NAME...]
# Three sizes, a short cyclic run, single and many connections, one address and, as root, two addresses in a
# network namespace of its own, which ends with it. It judges the form of the answers, not the times. Each
# conversation ends within 60 s.
set -uo pipefail
cd "$(dirname "$0")"

# Two interfaces, since usrsctp and Cyclone DDS take only addresses that an interface has.
if [ "${1:-}" = --in-namespace ]; then
  shift
  set -e
  ip link set lo up
  ip link add check-a type veth peer name check-b
  ip address add 10.77.1.1/24 dev check-a
  ip address add 10.77.2.1/24 dev check-b
  ip link set check-a up
  ip link set check-b up
  set +e
  address_lists=(127.0.0.1 10.77.1.1,10.77.2.1)
elif [ "$(id -u)" = 0 ] && unshare --net true 2>/dev/null; then
  exec unshare --net "./${0##*/}" --in-namespace "$@"
else
  echo "check.sh: two addresses are skipped: they need root, for a network namespace"
  address_lists=(127.0.0.1)
fi

limit=60
port=21000
work=$(mktemp -d)
running=()
trap 'kill "${running[@]}" 2>/dev/null; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
# A receiver that has died is a failure of its peer, not of this script.
trap '' PIPE

# Judges what the receiver and the sender said, one line each.
judge() {
  python3 - "$work/receiver" "$work/sender" "$1" <<'EOF'
import json, sys

def lines(path):
    return [json.loads(line) for line in open(path)]

def ready(answer, name):
    assert answer["event"] == "ready" and answer["peer"] == name, answer
    assert answer["version"] and answer["settings"], answer

def cost(answer):
    assert answer["event"] == "cost", answer
    assert answer["allocations"] > 0 and answer["peak_buffer_bytes"] > 0, answer

receiver, sender = lines(sys.argv[1]), lines(sys.argv[2])
name = sys.argv[3]
assert len(receiver) == 2 and len(sender) == 8, f"{len(receiver)} and {len(sender)} answers"
ready(receiver[0], name)
cost(receiver[1])
ready(sender[0], name)
assert receiver[0]["version"] == sender[0]["version"]
for answer in sender[1:4]:
    assert answer["event"] == "done" and answer["nanoseconds"] > 0, answer
cyclic = sender[4]
assert cyclic["event"] == "cyclic", cyclic
assert [channel["channel"] for channel in cyclic["channels"]] == [0, 2], cyclic
for channel, periods in zip(cyclic["channels"], (50, 10)):
    skipped = periods - channel["sent"]
    assert 0 < channel["sent"] <= periods, channel
    assert skipped <= channel["missed"] <= periods, channel
    assert 0 < len(channel["nanoseconds"]) <= channel["sent"], channel
cost(sender[5])
for answer in sender[6:]:
    assert answer["event"] == "failed" and answer["reason"], answer
EOF
}

# One conversation: NAME CONNECTIONS ADDRESSES.
converse() {
  local name=$1 common pid code=0
  port=$((port + 10))
  common=(--port "$port" --channels 3 --connections "$2" --max-size 1048576 --count)
  mkfifo "$work/orders"
  timeout "$limit" "bin/$name" receive --listen "$3" "${common[@]}" \
    <"$work/orders" >"$work/receiver" 2>"$work/errors" &
  pid=$!
  running=("$pid")
  exec 3>"$work/orders"
  for _ in $(seq 100); do
    [ -s "$work/receiver" ] || ! kill -0 "$pid" 2>/dev/null && break
    sleep 0.1
  done
  printf '%s\n' 'transfer 128' 'transfer 10000' 'transfer 1048576' \
    'cyclic 0.5 0:800:10000:10000 2:40000:50000:50000' cost 'transfer 1048577' nonsense exit |
    timeout "$limit" "bin/$name" send --to "$3" --from "$3" "${common[@]}" \
      >"$work/sender" 2>>"$work/errors" || code=$?
  { echo cost >&3; } 2>>"$work/errors"
  exec 3>&-
  wait "$pid" || code=$?
  rm "$work/orders"
  [ "$code" = 0 ] || echo "ended with $code" >>"$work/errors"
  judge "$name" 2>>"$work/errors" && [ "$code" = 0 ]
}

names=("$@")
if [ ${#names[@]} -eq 0 ]; then
  mapfile -t names < <(ls bin 2>/dev/null)
fi
if [ ${#names[@]} -eq 0 ]; then
  echo "check.sh: no peer is built; bench/peers/build.sh builds them" >&2
  exit 2
fi

failed=0
for name in "${names[@]}"; do
  for addresses in "${address_lists[@]}"; do
    for connections in single many; do
      if converse "$name" "$connections" "$addresses"; then
        echo "$name, $connections, $addresses: ok"
      else
        echo "$name, $connections, $addresses: FAILED"
        head -n 12 "$work/errors" | sed 's/^/    /'
        failed=1
      fi
    done
  done
done
exit "$failed"
