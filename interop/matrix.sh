#!/usr/bin/env bash
# The cases of the QUIC interop runner with every stack that is there, in both roles. Without arguments,
# writes docs/results/interop.md; with arguments, see --help.
set -euo pipefail
cd "$(dirname "$0")/.."

target=$(realpath "${CARGO_TARGET_DIR:-target}")
if [[ ! -x $target/release/interop-matrix || -z ${SKIP_BUILD:-} ]]; then
    interop/peers.sh
fi
if [[ $# == 0 ]]; then
    set -- --report docs/results/interop.md
fi
exec "$target/release/interop-matrix" --stacks "$target/interop" "$@"
