#!/usr/bin/env bash
# A real desktop over a lossy path, through `sutura vnc` and over TCP: see vnc_session.py, which gets all arguments.
# Needs Debian's tigervnc-standalone-server, tigervnc-viewer, xvfb and iproute2 and socat, and root; says what is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo build --release --locked -p sutura-cli
python=interop/.venv-vnc/bin/python
if [ ! -x "$python" ]; then
    python3 -m venv interop/.venv-vnc
    "$python" -m pip install --quiet --disable-pip-version-check python-xlib==0.33
fi
command=${CARGO_TARGET_DIR:-target}/release/sutura
for argument in "$@"; do
    if [ "${argument%%=*}" = --record ]; then
        cargo build --release --locked -p sutura-vnc --example record
        command=${CARGO_TARGET_DIR:-target}/release/examples/record
    fi
done
exec "$python" interop/vnc_session.py "$command" "$@"
