#!/usr/bin/env bash
# Makes interop/.venv with the foreign stacks that run.sh lets this one talk to.
set -euo pipefail
cd "$(dirname "$0")"

if ! cmp --silent requirements.txt .venv/requirements.txt; then
    python3 -m venv --clear .venv
    .venv/bin/pip install --quiet --disable-pip-version-check --requirement requirements.txt
    cp requirements.txt .venv/requirements.txt
fi
# A wheel of curl without HTTP/3 would only fail much later.
.venv/bin/python - <<'PYTHON'
import curl_cffi

version = curl_cffi.Curl().version().decode()
if "ngtcp2" not in version or "nghttp3" not in version:
    raise SystemExit(f"curl_cffi {curl_cffi.__version__} has no HTTP/3: {version}")
PYTHON
