#!/usr/bin/env bash
# The program and its tests on other kernels than this machine's: those of distributions, each started in QEMU without KVM, with this
# machine's files under it (read only; what is written stays in its memory), and without a network.
#
#   .ci/kernels.sh [5.10] [5.11] [5.13] [5.15] [6.1] [6.8] [6.12]     default: all
#
# Kernels are fetched by apt with lists of its own, and verified, into target/kernels, where they are kept. What cannot run there is
# printed with the reason. BUMPLESS_WRITE=1 keeps what was seen of each kernel in docs/kernels. Where QEMU, a tool or every kernel is
# missing, it says so and ends with 77. As root; times mean nothing there.
set -euo pipefail
cd "$(dirname "$0")/.."
here=$PWD
. .ci/bounded.sh
export CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=false

cannot() {
  echo "kernels: NOT RUN: $*" >&2
  exit 77
}
[ "$(id -u)" = 0 ] || cannot "it takes root, whose files the other kernel has"
while read -r tool package; do
  command -v "$tool" >/dev/null || cannot "there is no $tool (Debian: $package)"
done <<'TOOLS'
qemu-system-x86_64 qemu-system-x86
busybox busybox-static
modprobe kmod
cpio cpio
zstd zstd
xz xz-utils
apt-get apt
gpg gpg
curl curl
ip iproute2
ping iputils-ping
setpriv util-linux
TOOLS

# Kernel, and the packages that have it and its modules, of which the newest is taken.
kernels() {
  cat <<'TABLE'
5.10 ^linux-image-5\.10\.0-[0-9]+-amd64$
5.11 ^linux-(image-unsigned|modules)-5\.11\.0-[0-9]+-generic$
5.13 ^linux-(image-unsigned|modules)-5\.13\.0-[0-9]+-generic$
5.15 ^linux-(image|modules)-5\.15\.0-[0-9]+-generic$
6.1 ^linux-image-6\.1\.0-[0-9]+-amd64$
6.8 ^linux-(image|modules)-6\.8\.0-[0-9]+-generic$
6.12 ^linux-image-6\.12\.[0-9+a-z]+-amd64$
TABLE
}

# Crate, test target, seconds.
targets() {
  cat <<'TABLE'
linux/bpf|bumpless_bpf|60
linux/capture|bumpless_capture|120
linux/capture|departures|60
linux/capture|diversion|200
linux/capture|namespaces|240
linux/capture|no_allocation|60
linux/reception|bumpless_reception|60
linux/reception|classification|240
linux/reception|interfaces|200
cli|guard|400
TABLE
}

# What does not run there: test target, test (or `*` for all), on kernels before this one, why.
left_out() {
  cat <<'TABLE'
classification|*|5.12|its program is refused: guard-refused
interfaces|*|5.12|its program is refused: guard-refused
guard|*|5.12|its program is refused: guard-refused
classification|periods_follow_one_another_from_the_start|5.15|it runs the program once for each frame, which takes a millisecond and more there, emulated: so few frames in a period are no flood
namespaces|one_process_has_the_rules_and_nothing_is_left_of_them|5.12|tables of nf_tables have no owner, so the table's holder is not told; a start removes what was left
departures|real_sockets_carry_more_and_longer_copies_than_a_message_takes|5.12|a message of 64 whole segments is refused there, so copies leave one by one from then on
TABLE
}

before() {
  [ "$1" != "$2" ] && [ "$(printf '%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]
}

wanted=("$@")
[ ${#wanted[@]} -gt 0 ] || mapfile -t wanted < <(kernels | cut -d ' ' -f 1)
for kernel in "${wanted[@]}"; do
  kernels | grep -q "^$kernel " || {
    echo "kernels: no such kernel: $kernel ($(kernels | cut -d ' ' -f 1 | paste -s -d ' '))" >&2
    exit 2
  }
done

store=${CARGO_TARGET_DIR:-$here/target}/kernels
mkdir -p "$store/lists/partial"
work=$(mktemp -d "$store/run.XXXXXX")
trap 'end_bounded; rm -rf "$work"' EXIT
failed=()

# Ubuntu's key, which Debian has no package of: known by its fingerprint.
ubuntu_key() {
  local folder=$work/key fingerprint=F6ECB3762474EDA9D21B7022871920D1991BC93C
  [ ! -e "$store/ubuntu.gpg" ] || return 0
  mkdir -p "$folder/home"
  (cd "$folder" && curl -sSf --max-time 60 -o keyring.deb \
    http://archive.ubuntu.com/ubuntu/pool/main/u/ubuntu-keyring/ubuntu-keyring_2021.03.26_all.deb &&
    dpkg -x keyring.deb . && cp etc/apt/trusted.gpg.d/ubuntu-keyring-2018-archive.gpg key.gpg) || return 1
  [ "$(gpg --homedir "$folder/home" --batch --with-colons --show-keys "$folder/key.gpg" 2>/dev/null | grep '^fpr')" = "fpr:::::::::$fingerprint:" ] || {
    echo "kernels: the key of Ubuntu's archive is not $fingerprint" >&2
    return 1
  }
  mv "$folder/key.gpg" "$store/ubuntu.gpg"
}

cat >"$store/sources.list" <<LIST
deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian bullseye main
deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian bookworm main
deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian bookworm-backports main
deb [signed-by=$store/ubuntu.gpg] http://archive.ubuntu.com/ubuntu focal-updates main
deb [signed-by=$store/ubuntu.gpg] http://archive.ubuntu.com/ubuntu jammy-updates main
LIST
lists=(-q -o "Dir::Etc::sourcelist=$store/sources.list" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$store/lists"
  -o APT::Sandbox::User=root -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o Acquire::Retries=2)

# Fetches a kernel and unpacks it, unless it is there.
fetched() {
  local kernel=$1 pattern folder=$store/$1 names version
  [ ! -e "$folder/whole" ] || return 0
  ubuntu_key || true
  [ -e "$work/lists" ] || timeout 300 apt-get "${lists[@]}" update >"$work/apt" 2>&1 || true
  touch "$work/lists"
  pattern=$(kernels | sed -n "s/^$kernel //p")
  names=$(apt-cache "${lists[@]}" search --names-only "$pattern" | cut -d ' ' -f 1 | sort -V)
  version=$(grep image <<<"$names" | tail -n 1 | sed -E 's/^linux-image-(unsigned-)?//')
  [ -n "$version" ] || return 1
  rm -rf "$folder"
  mkdir -p "$folder/debs"
  # shellcheck disable=SC2046 # names of packages
  (cd "$folder/debs" && timeout 600 apt-get "${lists[@]}" download $(grep -F -- "-$version" <<<"$names")) >"$work/apt" 2>&1 || return 1
  # Where this is called, an error ends nothing by itself.
  for package in "$folder"/debs/*.deb; do dpkg -x "$package" "$folder" || return 1; done
  rm -rf "$folder/debs"
  depmod -b "$folder" "$version" || return 1
  touch "$folder/whole"
}

# The first file system: what it takes to have this machine's files.
initrd() {
  local folder=$1 version=$2 root=$work/root number=10 file
  rm -rf "$root"
  mkdir -p "$root"/{bin,modules,files,memory,both}
  cp "$(command -v busybox)" "$root/bin/busybox"
  for module in virtio_pci 9pnet_virtio 9p overlay; do modprobe -S "$version" -d "$folder" --show-depends "$module"; done |
    awk '$1 == "insmod" && !seen[$2]++ { print $2 }' >"$work/modules"
  while read -r file; do
    number=$((number + 1))
    case $file in
      *.xz) xz -dc "$file" ;;
      *.zst) zstd -qdc "$file" ;;
      *) cat "$file" ;;
    esac >"$root/modules/$number.ko"
  done <"$work/modules"
  cat >"$root/init" <<INIT
#!/bin/busybox sh
b=/bin/busybox
for module in /modules/*.ko; do \$b insmod \$module; done
\$b mount -t tmpfs memory /memory
\$b mkdir /memory/upper /memory/work
\$b mount -t 9p -o trans=virtio,version=9p2000.L,ro,cache=loose,msize=262144 files /files
\$b mount -t overlay -o lowerdir=/files,upperdir=/memory/upper,workdir=/memory/work overlay /both
exec \$b switch_root /both /bin/bash "$here/.ci/kernels-guest.sh" "$work/jobs" "$folder/lib/modules/$version"
INIT
  chmod 755 "$root/init"
  (cd "$root" && find . | cpio --quiet -o -H newc | gzip -1) >"$work/initrd"
}

# The jobs of a kernel. What is left out of it is said.
jobs() {
  local kernel=$1 name folder seconds executable of test earlier why skip
  while IFS='|' read -r folder name seconds; do
    executable=$(awk -F '\t' -v name="$name" -v folder="$here/crates/$folder" '$1 == name && $2 == folder { print $3 }' "$work/executables")
    [ -n "$executable" ] || {
      echo "kernels: no test target $name in $folder was built" >&2
      return 1
    }
    skip=()
    while IFS='|' read -r of test earlier why; do
      [ "$of" = "$name" ] && before "$kernel" "$earlier" || continue
      say "left out: ${folder##*/} $name $test: $why"
      if [ "$test" = '*' ]; then continue 2; fi
      skip+=(--skip "$test")
    done < <(left_out)
    echo "${folder##*/} $name|$seconds|$here/crates/$folder|'$executable' --test-threads 2 ${skip[*]-}" >>"$work/jobs"
  done < <(targets)
  echo "wan|300|/tmp|bash '$here/.ci/kernels-wan.sh' '$program'" >>"$work/jobs"
  if before "$kernel" 5.12; then
    echo "guard-refused|60|/tmp|bash '$here/.ci/kernels-guest.sh' refused '$program'" >>"$work/jobs"
  fi
}

say() {
  echo "kernels: $kernel: $*" | tee -a "$work/$kernel.txt"
}

# What came of a job, from what it wrote.
judge() {
  local name=$1 code=$2 log=$3 counted
  counted=$(sed -n 's/^test result: ok\. \([0-9]*\) passed.*/\1/p' "$log")
  if [ "$code" != 0 ]; then
    say "$name: FAILED (exit $code)"
    sed -n '/panicked/,/^note/p' "$log" | head -n 40
    tail -n 15 "$log"
    failed+=("$kernel: $name (exit $code)")
  elif [ -n "$counted" ]; then
    say "$name: $counted tests passed"
    sed -n 's/.*\.\.\. ignored (\(.*\))$/\1/p' "$log" | sort | uniq -c | while read -r count why; do
      say "$name: $count ignored: $why"
    done
  else
    grep . "$log" | while read -r line; do say "$name: $line"; done
  fi
}

# Starts a kernel, has it do the jobs, and tells what came of them.
run() {
  local folder=$store/$kernel version line log=$work/log code=0
  version=$(cd "$folder/lib/modules" && ls)
  : >"$work/jobs" && : >"$work/said"
  jobs "$kernel"
  initrd "$folder" "$version"
  # With several threads of emulation a kernel that patches its own code may trip over half a patch: one of 6.8 ended so.
  bounded "${KERNEL_SECONDS:-1800}" qemu-system-x86_64 -accel tcg,thread=single -cpu max -smp 2 -m 2048 -display none -monitor none \
    -nic none -no-reboot -virtfs local,path=/,mount_tag=files,security_model=none,readonly=on,multidevs=remap \
    -serial "file:$work/console" -serial "file:$work/said" -kernel "$folder/boot/vmlinuz-$version" -initrd "$work/initrd" \
    -append 'console=ttyS0 quiet panic=-1' </dev/null || code=$?
  say "Linux $version under $(qemu-system-x86_64 --version | sed -n '1s/ (.*//p'), emulated"
  : >"$log"
  # Serial lines end with a carriage return where the kernel adds it.
  tr -d '\r' <"$work/said" >"$work/told"
  while IFS= read -r line; do
    case $line in
      '@@ begin '*) : >"$log" ;;
      '@@ end '*)
        line=${line#@@ end }
        judge "${line% *}" "${line##* }" "$log"
        ;;
      *) printf '%s\n' "$line" >>"$log" ;;
    esac
  done <"$work/told"
  if ! grep -q '^@@ over' "$work/told"; then
    tail -n 20 "$work/console" "$log"
    failed+=("$kernel: it did not come to the end of its jobs (QEMU: exit $code)")
  fi
}

cargo test --quiet --locked --no-run --message-format=json --package bumpless-bpf --package bumpless-capture \
  --package bumpless-reception >"$work/built"
cargo test --quiet --locked --no-run --message-format=json --package bumpless-cli --test guard >>"$work/built"
cargo build --quiet --locked --package bumpless-cli
python3 - "$work/built" >"$work/executables" <<'PYTHON'
import json, os, sys
for line in open(sys.argv[1]):
    message = json.loads(line)
    if message.get("executable") and message.get("profile", {}).get("test"):
        print(message["target"]["name"], os.path.dirname(message["manifest_path"]), message["executable"], sep="\t")
PYTHON
program=$(realpath "${CARGO_TARGET_DIR:-target}/debug/bumpless")

ran=0
for kernel in "${wanted[@]}"; do
  if ! fetched "$kernel"; then
    echo "kernels: $kernel: left out: its packages cannot be had: $(tail -n 1 "$work/apt" 2>/dev/null || true)"
    continue
  fi
  run
  ran=$((ran + 1))
  if [ "${BUMPLESS_WRITE:-}" = 1 ]; then
    mkdir -p docs/kernels
    cp "$work/$kernel.txt" docs/kernels/
  fi
done
[ ${#failed[@]} -eq 0 ] || {
  printf 'kernels: FAILED: %s\n' "${failed[@]}" >&2
  exit 1
}
[ "$ran" -gt 0 ] || cannot "no kernel can be had"
