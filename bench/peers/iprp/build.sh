#!/usr/bin/env bash
# Builds into bench/peers/iprp/bin what `bumpless iprp torture --peers bench/peers/iprp/bin` sets iPRP against, all or those named:
#   bench/peers/iprp/build.sh [srt-group] [knet-stream] [linux-prp]
# srt-group: Debian's source package of SRT, built with bonding, which Debian's library lacks, and a program of ours.
# knet-stream: a program of ours against Debian's library of kronosnet.
# linux-prp: a kernel of Debian's with its module hsr, put together for QEMU.
# Installs the Debian packages that these need when it runs as root, and says which are missing otherwise.
set -euo pipefail
cd "$(dirname "$0")"
mkdir -p bin target
work=$PWD/target

need() {
  local package missing=()
  for package in "$@"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return
  [ "$(id -u)" = 0 ] || { echo "packages are missing; as root: apt-get install ${missing[*]}" >&2; return 1; }
  apt-get update -q >/dev/null
  DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}" >"$work/apt.log"
}

# The newest source package of SRT; sources are not in every machine's list.
srt_source() {
  local lists=$work/lists.sources
  mkdir -p "$work/apt/lists/partial"
  cat >"$lists" <<SOURCES
Types: deb-src
URIs: http://deb.debian.org/debian
Suites: $(. /etc/os-release && echo "$VERSION_CODENAME")
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
SOURCES
  local options=(-q -o "Dir::Etc::sourcelist=$lists" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$work/apt/lists"
    -o APT::Sandbox::User=root -o "Dir::Cache::pkgcache=" -o "Dir::Cache::srcpkgcache=")
  apt-get "${options[@]}" update >"$work/apt.log" && apt-get "${options[@]}" source srt >>"$work/apt.log"
}

srt-group() {
  need build-essential cmake dpkg-dev libssl-dev
  if ! compgen -G "$work/srt-*/CMakeLists.txt" >/dev/null; then
    # What is unpacked beside counts only when all of it is there.
    rm -rf "$work/unpacking"
    mkdir "$work/unpacking"
    (cd "$work/unpacking" && srt_source)
    mv "$work"/unpacking/srt-*/ "$work/"
  fi
  local source
  source=$(dirname "$(compgen -G "$work/srt-*/CMakeLists.txt" | sort -V | tail -n 1)")
  cmake -S "$source" -B "$work/srt" -DENABLE_BONDING=ON -DENABLE_APPS=OFF -DENABLE_SHARED=OFF -DUSE_ENCLIB=openssl \
    -DCMAKE_BUILD_TYPE=Release >"$work/srt.log"
  cmake --build "$work/srt" --parallel "$(nproc)" >>"$work/srt.log" 2>&1
  cc -O2 -Wall -Wextra -Werror -DENABLE_BONDING=1 -I "$work/include" -c srt-group.c -o "$work/srt-group.o" 2>/dev/null ||
    {
      mkdir -p "$work/include/srt"
      cp "$source"/srtcore/*.h "$work"/srt/version.h "$work/include/srt/"
      cc -O2 -Wall -Wextra -Werror -DENABLE_BONDING=1 -I "$work/include" -c srt-group.c -o "$work/srt-group.o"
    }
  c++ "$work/srt-group.o" "$work/srt/libsrt.a" -lssl -lcrypto -lpthread -o "$work/srt-group.new"
  mv "$work/srt-group.new" bin/srt-group
  bin/srt-group version
}

knet-stream() {
  need build-essential libknet-dev
  cc -O2 -Wall -Wextra -Werror -DKNET_PACKAGE="\"$(dpkg-query -W -f '${Version}' libknet-dev)\"" knet-stream.c -lknet -o bin/knet-stream.new
  mv bin/knet-stream.new bin/knet-stream
  bin/knet-stream version
}

linux-prp() {
  need build-essential qemu-system-x86 busybox-static kmod cpio xz-utils iproute2 util-linux
  local package kernel root=$work/root
  package=${BUMPLESS_PRP_KERNEL:-$(apt-cache search --names-only '^linux-image-[0-9][^ ]*-amd64$' | awk '{ print $1 }' |
    grep -Ev 'cloud|rt|dbg|unsigned' | sort -V | tail -n 1)}
  if [ ! -d "$work/$package" ]; then
    rm -rf "$work/unpacking"
    mkdir "$work/unpacking"
    (cd "$work/unpacking" && apt-get download -q "$package" >/dev/null && dpkg -x "$package"_*.deb root)
    mv "$work/unpacking/root" "$work/$package"
  fi
  rm -rf "$root"
  mkdir -p "$root"/{bin,sbin,usr/sbin,lib}
  kernel=$(cd "$work/$package/lib/modules" && ls)
  local modules="$root/lib/modules/$kernel" name path
  mkdir -p "$modules"
  for name in veth hsr sch_netem crc32_generic crc32c_generic libcrc32c; do
    path=$(find "$work/$package/lib/modules" -name "$name.ko*" | head -n 1)
    [ -n "$path" ] || continue
    case $path in
    *.xz) xz -dc "$path" >"$modules/$name.ko" ;;
    *) cp "$path" "$modules/" ;;
    esac
  done
  cp "$work/$package/lib/modules/$kernel"/modules.{builtin,order} "$modules/"
  depmod -b "$root" "$kernel" 2>/dev/null
  cp "$(command -v busybox)" "$root/bin/busybox"
  cc -O2 -Wall -Wextra -Werror -static prp-stream.c -o "$root/bin/prp-stream"
  # Tools of iproute2 with the libraries that they need.
  for name in ip tc; do
    path=$(realpath "$(command -v $name || echo /sbin/$name)")
    cp "$path" "$root/usr/sbin/$name"
    ldd "$path" | grep -o '/[^ ]*' | while read -r library; do
      mkdir -p "$root$(dirname "$library")"
      cp -Ln "$library" "$root$library"
    done
  done
  install -m 755 linux-prp.init "$root/init"
  (cd "$root" && find . | cpio --quiet -o -H newc | gzip -1) >"$work/initrd.new"
  cp "$work/$package"/boot/vmlinuz-* "$work/kernel.new"
  mv "$work/initrd.new" bin/linux-prp.initrd
  mv "$work/kernel.new" bin/linux-prp.kernel
  install -m 755 linux-prp bin/linux-prp
  echo "Linux $kernel"
}

[ $# -gt 0 ] || set -- srt-group knet-stream linux-prp
for name in "$@"; do
  case $name in srt-group | knet-stream | linux-prp) "$name" ;; *)
    echo "build.sh: nothing is called '$name'; there are: srt-group, knet-stream, linux-prp" >&2
    exit 2
    ;;
  esac
done
