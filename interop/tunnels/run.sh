#!/usr/bin/env bash
# Tunnels over bad links: see README.md and --help. Builds sutura at first, and installs what Debian has of the others if it
# may; with SKIP_BUILD set, it takes what is there.
set -euo pipefail
cd "$(dirname "$0")/../.."

if [ -z "${SKIP_BUILD:-}" ]; then
    interop/tunnels/build.sh >&2
fi
exec python3 interop/tunnels/bench.py "$@"
