#!/usr/bin/env bash
# Builds the cores for a microcontroller that has no std: whoever pulls std in, breaks this build.
#
#   .ci/no_std.sh [crate ...]     default: every core
#
# Takes an installed bare-metal target, or one that rustup can get. Otherwise builds core and alloc
# itself, from Debian's rust-src package of the compiler's own version, which comes through private apt
# directories below target/, so that the machine's apt stays as it is. Where neither can be had, it
# says so and ends with 77.
set -euo pipefail
cd "$(dirname "$0")/.."

cores=("$@")
[ ${#cores[@]} -gt 0 ] || cores=(bumpless-base bumpless-wire bumpless-transfer bumpless-redundancy bumpless-secure bumpless-iprp bumpless-guard)
target=thumbv7m-none-eabi
work=$PWD/target/no_std
mkdir -p "$work"

fail() {
  echo "no_std: $*" >&2
  exit 1
}

cannot() {
  echo "no_std: NOT RUN: $*" >&2
  exit 77
}

# Fetches and unpacks rust-src $1 into $work/src; prints nothing of use to anybody but people.
fetch_sources() {
  local version=$1 apt=$work/apt suite mirror
  command -v apt-get >/dev/null && command -v dpkg >/dev/null ||
    cannot "no bare-metal target is installed and this is no Debian: run 'rustup target add $target'"
  rm -rf "$apt" "$work/src.part"
  mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
  suite=${NO_STD_SUITE:-trixie-backports}
  local options=(
    -o Dir::Etc::sourcelist="$apt/sources.list" -o Dir::Etc::sourceparts=/dev/null
    -o Dir::State::lists="$apt/lists" -o Dir::Cache="$apt/cache" -o APT::Sandbox::User=
  )
  # The mirrors that the machine already uses; the first that has the suite and the package wins.
  for mirror in $(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | sort -u); do
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" \
      >"$apt/sources.list"
    apt-get "${options[@]}" -qq update >"$apt/log" 2>&1 || continue
    if (cd "$apt" && apt-get "${options[@]}" -qq download "rust-src=$version*") >>"$apt/log" 2>&1; then
      dpkg -x "$apt"/rust-src_*.deb "$work/src.part"
      # Last of all, so that an interrupted run is not taken for a finished one.
      rm -rf "$work/src" && mv "$work/src.part" "$work/src" && rm -rf "$apt"
      return
    fi
  done
  cat "$apt/log" >&2 || true
  cannot "no configured apt mirror has rust-src $version in $suite (set NO_STD_SUITE to another suite)"
}

# A sysroot that is the toolchain's plus the sources of core and alloc, and a rustc that uses it.
make_sysroot() {
  local version=$1 real sysroot=$work/sysroot entry
  real=$(rustc --print sysroot)
  rm -rf "$sysroot"
  mkdir -p "$sysroot/lib/rustlib/src"
  ln -s "$work/src/usr/src/rustc-$version" "$sysroot/lib/rustlib/src/rust"
  for entry in "$real"/lib/*; do
    [ "${entry##*/}" = rustlib ] || ln -s "$entry" "$sysroot/lib/"
  done
  for entry in "$real"/lib/rustlib/*; do
    [ "${entry##*/}" = src ] || ln -s "$entry" "$sysroot/lib/rustlib/"
  done
  printf '#!/bin/sh\nexec "%s/bin/rustc" --sysroot "%s" "$@"\n' "$real" "$sysroot" >"$work/rustc"
  chmod +x "$work/rustc"
}

installed_target() {
  rustup target list --installed 2>/dev/null | grep -E -- '-none(-|$)' | head -n 1 || true
}

flags=()
installed=$(installed_target)
if [ -z "$installed" ] && timeout 60 rustup target add "$target" >/dev/null 2>&1; then
  installed=$(installed_target)
fi
if [ -n "$installed" ]; then
  target=$installed
else
  version=$(rustc --version | cut -d ' ' -f 2)
  library=$work/src/usr/src/rustc-$version/library
  [ -f "$library/core/Cargo.toml" ] || fetch_sources "$version"
  [ -f "$library/core/Cargo.toml" ] || fail "rust-src has no ${library#"$work"/src}"
  make_sysroot "$version"
  export RUSTC=$work/rustc RUSTC_BOOTSTRAP=1
  flags=(-Zbuild-std=core,alloc)
fi

# One by one, so that no crate gets by on features that only another one asks for.
for core in "${cores[@]}"; do
  echo "no_std: $core for $target"
  cargo build --quiet --locked --no-default-features --package "$core" --target "$target" \
    --target-dir "$work/build" ${flags[@]+"${flags[@]}"} ||
    fail "$core does not build without std"
done
echo "no_std: ${#cores[@]} crates build without std"
