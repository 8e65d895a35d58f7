#!/usr/bin/env bash
# Makes ready what the comparison of tunnels needs, says how, and leaves out with a word what cannot be had. README.md says
# what the systems are.
set -euo pipefail
cd "$(dirname "$0")/.."

others/build.sh sutura-cli
for name in tunnel-tools kcptun wireguard-go srt hysteria; do
    others/build.sh "$name" || echo "left out: $name" >&2
done
