#!/usr/bin/env bash
# What .ci/kernels.sh runs as the first process of another kernel: this machine's files lie under it, what is written stays in memory.
# It runs the jobs of a file, `name|seconds|folder|command`, tells of each on the second serial line, and switches off.
# `refused PROGRAM` is a job of its own: on a kernel that is too old for the guard, which says so and leaves nothing.
set -u

refused() {
  local program=$1 said code=0 attempt
  cd "$(mktemp -d)" && ip link add na type veth peer name nb && ip link set na up && ip link set nb up || return 1
  printf '%s\n' '[guard]' 'interfaces = ["na"]' 'socket = "guard.sock"' '[[flow]]' 'name = "setpoints"' 'protocol = "udp"' \
    'port = 4713' 'capacity = 1000' 'period_ms = 60000' >guard.toml
  for attempt in check run; do
    code=0
    said=$(timeout 20 "$program" guard "$attempt" guard.toml 2>&1) || code=$?
    grep -q 'it takes Linux [0-9.]* or later' <<<"$said" && [ "$code" = 1 ] || {
      echo "guard $attempt, exit $code: $said"
      return 1
    }
    echo "guard $attempt: $(grep -o 'cannot load.*' <<<"$said")"
  done
  ! ip link show na | grep xdp
}
if [ "$1" = refused ]; then
  refused "$2"
  exit
fi

jobs=$1 modules=$2
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8

mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts pts /dev/pts
for place in /dev/shm /run; do mount -t tmpfs tmpfs "$place"; done
mount -t cgroup2 cgroup /sys/fs/cgroup
mkdir -p "/lib/modules/$(uname -r)"
mount --bind "$modules" "/lib/modules/$(uname -r)"
# Kinds of queues and of interfaces come by themselves; the kernel asks for these by names that have changed.
for module in veth dummy tun; do modprobe -q "$module" || true; done
ip link set lo up

exec 3>/dev/ttyS1
stty -F /dev/ttyS1 raw 2>/dev/null
echo "@@ kernel $(uname -r)" >&3
while IFS='|' read -r name seconds folder command; do
  echo "@@ begin $name" >&3
  code=0
  (cd "$folder" && CARGO_MANIFEST_DIR=$folder exec timeout -k 5 "$seconds" bash -c "$command") >/tmp/job.log 2>&1 </dev/null || code=$?
  cat /tmp/job.log >&3
  echo >&3
  echo "@@ end $name $code" >&3
done <"$jobs"
echo "@@ over" >&3
sync
echo o >/proc/sysrq-trigger
sleep 60
