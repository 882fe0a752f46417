#!/usr/bin/env bash
# Makes the shipped code wrong in one place at a time and has the simulator find each fault
# (docs/deliberate-faults.md, which BUMPLESS_WRITE=1 writes anew), and the exhaustive exploration those that its
# table names (spec/exploration.md). Five minutes with the build; in a target directory of its own, since the flag
# rebuilds everything.
set -euo pipefail
cd "$(dirname "$0")/.."

export RUSTFLAGS="--cfg bumpless_deliberate_faults"
cargo test --locked --release --target-dir target/deliberate-faults --package bumpless-sim \
  --test deliberate_faults -- --nocapture
cargo test --locked --release --target-dir target/deliberate-faults --package bumpless-redundancy \
  --test exhaustive -- deliberate
