#!/usr/bin/env bash
# Makes a copy of the tree wrong in one place at a time and has the simulator find each mutation (docs/mutations.md,
# which BUMPLESS_WRITE=1 writes anew), the exhaustive exploration those that its table names (spec/exploration.md), and the worlds of iPRP,
# of protected states and of sessions their own.
# All are built once, and switched on one by one. Five minutes with the build.
#
#   .ci/mutations.sh               every mutation
#   .ci/mutations.sh --slice N     the day's Nth part of the pair's and of sessions': in N days each is searched for (iPRP's and states' always)
#   .ci/mutations.sh ARGUMENTS     `cargo test` with these in the tree of all mutations, instead
set -euo pipefail
if [ "${1:-}" = --slice ]; then
  parts=${2:?how many parts}
  export BUMPLESS_SLICE=$(($(date -u +%s) / 86400 % parts))/$parts
  shift 2
fi
cd "$(dirname "$0")/.."
root=$PWD
tree=$root/target/mutations/tree

rustfmt --check --edition 2024 mutations/harness/crates/cores/base/src/mutation.rs \
  mutations/harness/crates/proof/sim/tests/mutations/main.rs mutations/harness/crates/cores/redundancy/tests/exhaustive/mutations.rs \
  mutations/harness/crates/cores/iprp/tests/world/mutations.rs mutations/harness/crates/cores/secure/tests/states_world/mutations.rs \
  mutations/harness/crates/product/management/src/service/world/mutations.rs

rm -rf "$tree"
mkdir -p "$tree"
# A tracked file that is deleted and not committed yet has nothing to copy.
git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' file; do
  [ ! -e "$file" ] || printf '%s\0' "$file"
done | xargs -0 cp --archive --parents --target-directory="$tree"
cp -r mutations/harness/crates "$tree"
# Another version, so that its crates share target/ with the tree's own without being taken for them.
sed -i '/^\[workspace.package\]/,/^\[/ s/^version = "\(.*\)"/version = "\1-mutations"/' "$tree/Cargo.toml"
sed -i '/^name = "bumpless/ { n; s/^version = "\(.*\)"/version = "\1-mutations"/ }' "$tree/Cargo.lock"

# Without the ceiling, git would take the copy for a part of this repository and leave it as it is.
export GIT_CEILING_DIRECTORIES=$root/target
cd "$tree"
apply() {
  local said
  said=$(git apply --recount -C1 "$@" 2>&1) || {
    printf '%s\n' "$said" >&2
    return 1
  }
}

broken=0
complain() {
  echo "mutations: $*" >&2
  broken=1
}
patches=(mutations/*.patch)
for patch in mutations/harness/hooks.patch "${patches[@]}"; do
  apply --check "$patch" || complain "$patch no longer applies: make it anew"
done
for patch in "${patches[@]}"; do
  name=$(basename "$patch" .patch)
  grep -qF "mutation::is_on(\"$name\")" "$patch" || complain "$patch does not ask for its own name"
done
[ "$broken" = 0 ] || exit 1
for patch in mutations/harness/hooks.patch "${patches[@]}"; do
  apply "$patch" || complain "$patch applies alone, but not after those before it: they change the same lines"
done
[ "$broken" = 0 ] || exit 1
echo "mutations: ${#patches[@]} patches applied${BUMPLESS_SLICE:+, searched for: part $BUMPLESS_SLICE}"

run() {
  cargo test --locked --target-dir "$root/target" "$@"
}
if [ $# -gt 0 ]; then
  run "$@"
  exit
fi
run --package bumpless-sim --test mutations -- --nocapture
run --package bumpless-redundancy --test exhaustive -- mutations
run --package bumpless-iprp --test world -- mutations --nocapture
run --package bumpless-secure --test states_world -- mutations --nocapture
run --package bumpless-management --lib -- mutations --nocapture
if [ "${BUMPLESS_WRITE:-}" = 1 ]; then
  cp docs/mutations.md "$root/docs/mutations.md"
fi
