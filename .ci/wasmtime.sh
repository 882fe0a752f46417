#!/usr/bin/env bash
# WebAssembly modules on wasmtime, which CI does not build (it takes as long as all the rest): lints, the tests of the host over
# both engines, a module tried by the program itself on each, and what a cycle costs.
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=false
target=${CARGO_TARGET_DIR:-target}

cargo clippy -p bumpless-host --all-targets --locked --features wasmtime -- -D warnings
cargo test -p bumpless-host --locked --features wasmtime

crates() {
  cargo tree -p bumpless-cli --locked --edges normal,build --prefix none --features "$1" | sed 's/ (\*)$//' | sort -u | grep -c .
}
echo "wasmtime adds $(($(crates wasmtime) - $(crates wasm))) crates"
cargo run --profile quick -p bumpless-host --locked --features wasmtime --example cost -- "$target/matrix.wasm"
cargo build --profile quick -p bumpless-cli --locked --features wasmtime
for engine in wasmi wasmtime; do
  "$target/quick/bumpless" program test "$target/matrix.wasm" --inputs 2 --outputs 1 --engine "$engine"
done
