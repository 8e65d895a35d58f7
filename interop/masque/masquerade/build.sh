#!/usr/bin/env bash
# Builds masquerade-proxy as it is and with the patches beside this: `build.sh OUT` makes the programs OUT/masquerade and
# OUT/masquerade-patched. Needs cmake, a C++ compiler, patch and python3; the first time, BoringSSL takes minutes.
set -euo pipefail
out=$(realpath --canonicalize-missing "$1")
cd "$(dirname "$0")"
export CARGO_TARGET_DIR=$out/masquerade-target
cargo build --quiet --locked
cp "$CARGO_TARGET_DIR/debug/masquerade" "$out/masquerade"

# source_of CRATE: where cargo has put its sources.
source_of() {
    cargo metadata --quiet --format-version 1 --locked | python3 -c 'import json, pathlib, sys
print(next(pathlib.Path(p["manifest_path"]).parent for p in json.load(sys.stdin)["packages"] if p["name"] == sys.argv[1]))' "$1"
}

patched=$out/masquerade-patches
rm -rf "$patched"
mkdir "$patched"
cp -r Cargo.toml Cargo.lock src "$patched"
for crate in masquerade-proxy quiche; do
    cp -r "$(source_of "$crate")" "$patched/$crate"
    patch --quiet --strip 1 --directory "$patched/$crate" < "$crate.patch"
    sed --in-place "1i #![allow(warnings)]" "$patched/$crate/src/lib.rs"
    printf '\n[patch.crates-io.%s]\npath = "%s"\n' "$crate" "$crate" >> "$patched/Cargo.toml"
done
# The patched quiche takes the BoringSSL that was built for the other one.
libraries=("$CARGO_TARGET_DIR"/debug/build/quiche-*/out/build/libssl.a)
QUICHE_BSSL_PATH=$(dirname "$(dirname "${libraries[0]}")")
export QUICHE_BSSL_PATH
cargo build --quiet --offline --manifest-path "$patched/Cargo.toml"
cp "$CARGO_TARGET_DIR/debug/masquerade" "$out/masquerade-patched"
