#!/usr/bin/env bash
# Builds the foreign peers into bench/peers/bin, and the programs of `bumpless wan study` (echo-*) into
# bench/peers/study, all of them or those named, one after the other:
#   bench/peers/build.sh [NAME...]
# Installs the Debian packages that a peer needs when it runs as root, and says which are missing
# otherwise. Ends with an error only if a peer that was named could not be built.
set -uo pipefail
cd "$(dirname "$0")"

all=(quinn echo-quinn echo-tquic echo-usrsctp usrsctp open62541 cyclonedds tquic aeron)

# Debian packages, by peer.
packages() {
  echo build-essential
  case $1 in
  usrsctp | echo-usrsctp) echo pkg-config libusrsctp-dev ;;
  cyclonedds) echo pkg-config cyclonedds-dev cyclonedds-tools ;;
  open62541) echo cmake libclang-dev clang python3 ;;
  tquic | echo-tquic) echo cmake libclang-dev clang ;;
  aeron) echo libclang-dev clang uuid-dev libbsd-dev python3-venv ;;
  esac
}

# The peers with a tuned form beside the default one.
has_tuned() {
  case $1 in quinn | tquic | usrsctp | cyclonedds | aeron) true ;; *) false ;; esac
}

missing_packages() {
  command -v dpkg-query >/dev/null || return 0
  local package
  for package in $(packages "$1"); do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || echo "$package"
  done
}

# Installs what is missing, or says what to install.
provide_packages() {
  local missing
  mapfile -t missing < <(missing_packages "$1")
  [ ${#missing[@]} -eq 0 ] && return 0
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "packages are missing; as root: apt-get install ${missing[*]}"
    return 1
  fi
  local install=(apt-get install -y -q --no-install-recommends "${missing[@]}")
  if ! { apt-get update -q && DEBIAN_FRONTEND=noninteractive "${install[@]}"; } >>"target/$1.log" 2>&1; then
    echo "apt-get could not install ${missing[*]}: bench/peers/target/$1.log"
    return 1
  fi
}

# Aeron asks for a CMake that Debian 12 lacks: takes it from PyPI if need be, and says where it is.
provide_cmake() {
  local version
  version=$(cmake --version 2>/dev/null | sed -n 's/^cmake version //p')
  if printf '%s\n' 3.30 "$version" | sort -V -C; then
    command -v cmake
  elif { python3 -m venv target/cmake && target/cmake/bin/pip install -q 'cmake>=3.30,<4'; } >>target/aeron.log 2>&1; then
    echo "$PWD/target/cmake/bin/cmake"
  else
    return 1
  fi
}

# Builds one peer; says its version, or why not.
build() {
  local name=$1
  : >"target/$name.log"
  provide_packages "$name" || return 1
  if [ "$name" = aeron ] && ! CMAKE=$(provide_cmake); then
    echo "Aeron needs CMake 3.30 or later, and PyPI did not give it: bench/peers/target/aeron.log"
    return 1
  fi
  if ! CMAKE=${CMAKE:-cmake} cargo build --release --locked --target-dir target -p "peer-$name" >>"target/$name.log" 2>&1; then
    echo "the build failed: $(grep -m1 '^error' "target/$name.log"); bench/peers/target/$name.log"
    return 1
  fi
  local folder=bin
  case $name in echo-*) folder=study ;; esac
  install -m 755 "target/release/peer-$name" "$folder/$name"
  has_tuned "$name" && ln -sf "$name" "$folder/$name-tuned"
  "$folder/$name" version
}

named=("$@")
[ ${#named[@]} -eq 0 ] && named=("${all[@]}")
for name in "${named[@]}"; do
  case " ${all[*]} " in *" $name "*) ;; *)
    echo "build.sh: no peer is called '$name'; there are: ${all[*]}" >&2
    exit 2
    ;;
  esac
done

mkdir -p bin study target
failed=0
for name in "${named[@]}"; do
  start=$SECONDS
  if said=$(build "$name"); then
    echo "$name: built, version $said ($((SECONDS - start)) s)"
  else
    echo "$name: not built: $said"
    failed=1
  fi
done
[ $# -eq 0 ] || exit "$failed"
