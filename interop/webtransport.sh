#!/usr/bin/env bash
# WebTransport with others, in both roles: see webtransport.py. webtransport-go needs Go, Chromium Debian's chromium;
# what is not there is left out, and said so.
set -euo pipefail
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-target}
cargo build --quiet --locked -p sutura-webtransport --example echo
arguments=(--echo "$target/debug/examples/echo")
if command -v go >/dev/null; then
    mkdir -p "$target/webtransport"
    go=$(realpath "$target/webtransport")/webtransport-go
    (cd interop/webtransport-go && go build -o "$go" .)
    arguments+=(--go "$go")
else
    echo 'webtransport-go is left out: there is no Go'
fi
if command -v chromium >/dev/null; then
    arguments+=(--chromium chromium)
else
    echo 'Chromium is left out: there is no chromium (Debian: apt-get install chromium)'
fi
exec python3 interop/webtransport.py "${arguments[@]}"
