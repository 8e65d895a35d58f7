#!/usr/bin/env bash
# Tunnels of MASQUE with masquerade-proxy, in both roles, over the loopback device: `run.sh SUTURA`, where SUTURA is the
# command. Needs what build.sh needs; what it builds is kept in target/masque.
set -euo pipefail
sutura=$(realpath "$1")
cd "$(dirname "$0")/../../.."
programs=$(realpath --canonicalize-missing "${CARGO_TARGET_DIR:-target}")/masque
interop/masque/masquerade/build.sh "$programs"
exec python3 interop/masque/masquerade.py --sutura "$sutura" --programs "$programs"
