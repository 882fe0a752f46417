#!/usr/bin/env bash
# Runs what threads share without locks in every order that they can take (loom). A minute with the
# build; in a target directory of its own, since the flag rebuilds everything.
set -euo pipefail
cd "$(dirname "$0")/.."

run() {
  RUSTFLAGS="--cfg loom" cargo test --quiet --locked --profile quick --target-dir target/loom "$@"
}

run --package bumpless-atomic-box --lib every_order -- --nocapture
run --package bumpless-transfer --lib every_order -- --nocapture
run --package bumpless-mailbox --test every_order -- --nocapture
