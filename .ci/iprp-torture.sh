#!/usr/bin/env bash
# The short run of `bumpless iprp torture` (spec/iprp-lab.md, Y-40 and further), under a minute beside the build. What cannot run here
# is said, and then this ends with 77; with BUMPLESS_REQUIRE_ALL=1 that is a failure. BUMPLESS_BINARY names a `bumpless` that is
# there already; without it, one is built.
#
#   .ci/iprp-torture.sh [further arguments of `bumpless iprp torture`]     default: --quick
set -euo pipefail
cd "$(dirname "$0")/.."

skip() {
  echo "iPRP torture: skipped: $1" >&2
  [ "${BUMPLESS_REQUIRE_ALL:-0}" = 1 ] && exit 1
  exit 77
}

command -v ip >/dev/null || skip "needs ip (iproute2)"
unshare --net true 2>/dev/null || unshare --user --map-root-user --net true 2>/dev/null || skip "may not make network namespaces"

bumpless=${BUMPLESS_BINARY:-${CARGO_TARGET_DIR:-target}/quick/bumpless}
[ -n "${BUMPLESS_BINARY:-}" ] || cargo build --profile quick --locked -p bumpless-cli
if [ $# -eq 0 ]; then
  set -- --quick
fi
exec "$bumpless" iprp torture "$@"
