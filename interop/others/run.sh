#!/usr/bin/env bash
# Sutura and systems that we did not write over the same paths: see README.md and --help. Builds what it can at first;
# with SKIP_BUILD set, it takes what is there.
set -euo pipefail
cd "$(dirname "$0")/../.."

if [ -z "${SKIP_BUILD:-}" ]; then
    interop/others/build.sh >&2
fi
exec python3 interop/others/measure.py "$@"
