#!/usr/bin/env bash
# The wide-area network on a kernel with netem (spec/wan.md, U-34, U-35, U-41): delays of three links on the way, losses, a rate,
# a cut, and nothing that is left. .ci/kernels.sh runs it in other kernels.
#
#   .ci/kernels-wan.sh PROGRAM
#
# The least of some round trips is judged, no tail: it is never shorter than the links, and shorter than twice that.
set -euo pipefail
program=$1
folder=$(mktemp -d)
name=kernels
trap '"$program" wan down --name $name >/dev/null 2>&1; rm -rf "$folder"' EXIT
cat >"$folder/network.json" <<'JSON'
{"schema": "bumpless.wan-topology/1", "router_us": 0,
 "nodes": [{"name": "centre", "kind": "centre"}, {"name": "one", "kind": {"router": "backbone"}},
  {"name": "two", "kind": {"router": "access"}}, {"name": "far", "kind": "substation"}],
 "links": [{"ends": ["centre", "one"], "delay_us": 100000}, {"ends": ["one", "two"], "delay_us": 150000},
  {"ends": ["two", "far"], "delay_us": 50000}]}
JSON
wrong() {
  echo "kernels-wan: $*" >&2
  exit 1
}
spaces() {
  # shellcheck disable=SC2012 # names of the kernel's
  ls -l /proc/[0-9]*/ns/net 2>/dev/null | grep -o 'net:.*' | sort -u | wc -l
}
wan() {
  local action=$1
  shift
  "$program" wan "$action" --name "$name" "$@"
}
ask() {
  wan exec centre -- ping "$@" "$far" || true
}
# The least round trip of so many in whole milliseconds.
least() {
  ask -c "$1" -i 0.2 -W 5 | sed -n 's|^rtt [^=]*= \([0-9]*\).*|\1|p'
}
delayed() {
  local ms
  ms=$(least "${2:-5}")
  [ -n "$ms" ] || wrong "$1: no answer"
  [ "$ms" -ge 600 ] && [ "$ms" -lt 1200 ] || wrong "$1: a round trip of $ms ms, by three links of 300 ms in all"
  echo "$1: a round trip of $ms ms over links of 300 ms"
}
# Packets of so many that are answered.
answered() {
  ask -q -c "$1" -l "${2:-1}" -i 0.02 -s 1000 -W 5 | sed -n 's/.* \([0-9]*\) received.*/\1/p'
}

before=$(spaces)
wan up --file "$folder/network.json" --json >"$folder/up.json"
grep -Eq '"by": *"netem"' "$folder/up.json" || wrong "delays are not by netem: $(tr -d '\n' <"$folder/up.json")"
far=$(wan exec far -- ip -o -4 address show dev lo | sed -n 's|.* inet \([0-9.]*\)/32 .*|\1|p' | grep -v '^127' | head -n 1)
wan exec one -- tc qdisc show | grep -q 'netem.*delay 150ms' || wrong "no netem of 150 ms at the router: $(wan exec one -- tc qdisc show)"
delayed "as it comes up"

got=$(answered 200)
[ "$got" = 200 ] || wrong "$got of 200 without losses"
wan impair two:far --loss-percent 50 >/dev/null
got=$(answered 200)
# Each way by itself: 50 on average, give or take 6.
[ "$got" -ge 20 ] && [ "$got" -le 85 ] || wrong "$got of 200 with losses of 50 % each way"
echo "losses of 50 % each way: $got of 200"
# Of four packets one is answered.
delayed "with losses" 50

wan impair two:far --rate-mbit 1 >/dev/null
wan exec two -- tc qdisc show | tee "$folder/queues" | grep -q 'netem.*delay 50ms' || wrong "no netem behind the rate: $(cat "$folder/queues")"
grep -q tbf "$folder/queues" || wrong "no rate: $(cat "$folder/queues")"
got=$(answered 60 60)
[ "$got" -ge 5 ] && [ "$got" -lt 60 ] || wrong "$got of 60 at once through 1 Mbit/s"
echo "1 Mbit/s: $got of 60 packets of 1,000 bytes at once"
delayed "with a rate"

wan cut far >/dev/null
[ -z "$(ask -c 1 -W 2 | sed -n 's|^rtt .*|answered|p')" ] || wrong "what is cut answers"
wan impair two:far --none >/dev/null
[ -z "$(ask -c 1 -W 2 | sed -n 's|^rtt .*|answered|p')" ] || wrong "what is cut answers when its rate is taken back"
wan heal far >/dev/null
delayed "healed"
got=$(answered 60 60)
[ "$got" = 60 ] || wrong "$got of 60 at once when the rate is taken back"

wan down >/dev/null
for _ in $(seq 50); do
  after=$(spaces)
  [ "$after" != "$before" ] || break
  sleep 0.2
done
[ "$after" = "$before" ] || wrong "$after network namespaces, $before before"
[ -z "$(compgen -G "/run/bumpless-wan-$name.*")" ] || wrong "files are left: $(compgen -G "/run/bumpless-wan-$name.*")"
echo "down: nothing is left"
