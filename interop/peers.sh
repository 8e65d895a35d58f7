#!/usr/bin/env bash
# Builds the endpoints of the matrix, each as a program named after its stack in target/interop, and
# says which cannot be built. Stacks are named on the command line; all without.
set -euo pipefail
cd "$(dirname "$0")/.."

target=$(realpath "${CARGO_TARGET_DIR:-target}")
export CARGO_TARGET_DIR=$target PATH=$PATH:/usr/sbin
out=$target/interop
mkdir -p "$out"
touch "$out.versions"
wanted=("$@")

wants() {
    [[ ${#wanted[@]} == 0 || " ${wanted[*]} " == *" $1 "* ]]
}

# version_of MANIFEST CRATE: the version that a lock file has.
version_of() {
    cargo metadata --quiet --format-version 1 --locked --manifest-path "$1" |
        python3 -c 'import json, sys
print(next(p["version"] for p in json.load(sys.stdin)["packages"] if p["name"] == sys.argv[1]))' "$2"
}

# stack NAME NEEDS COMMAND...: builds a stack if what it needs is there.
stack() {
    local name=$1 needs=$2
    shift 2
    wants "$name" || return 0
    rm -f "$out/$name"
    sed -i "/^$name /d" "$out.versions"
    for need in $needs; do
        if ! command -v "$need" >/dev/null; then
            echo "left out: $name, because there is no $need" >&2
            return 0
        fi
    done
    if ! "$@"; then
        echo "left out: $name, because it cannot be built" >&2
        rm -f "$out/$name"
        return 0
    fi
    echo "$out/$name"
}

rust() { # NAME MANIFEST PROGRAM
    cargo build --release --quiet --locked --manifest-path "$2" --bin "$3" || return 1
    cp "$target/release/$3" "$out/$1"
    echo "$1 $(version_of "$2" "$1")" >>"$out.versions"
}

go_module() {
    (cd interop/quic-go && go build -o "$out/quic-go" .) || return 1
    (cd interop/quic-go && go list -m -f 'quic-go {{.Version}}' github.com/quic-go/quic-go) >>"$out.versions"
}

# script NAME INTERPRETER PATH VERSION: a stack that is a script.
script() {
    printf '#!/bin/sh\nexec %s %s "$@"\n' "$2" "$3" >"$out/$1"
    chmod +x "$out/$1"
    echo "$1 $4" >>"$out.versions"
}

python_stack() {
    interop/setup.sh || return 1
    local python=$PWD/interop/.venv/bin/python
    script aioquic "$python" "$PWD/interop/aioquic_endpoint.py" \
        "$("$python" -c 'from importlib.metadata import version; print(version("aioquic"))')"
}

debian_stack() {
    local version
    version=$(dpkg-query --show --showformat='${Version}' ngtcp2-server) || return 1
    if dpkg --compare-versions "$version" lt 1; then
        echo "ngtcp2 $version is too old: see interop/README.md" >&2
        return 1
    fi
    script ngtcp2 bash "$PWD/interop/ngtcp2.sh" "$version"
}

stack sutura cargo rust sutura interop/Cargo.toml interop-sutura
stack quinn cargo rust quinn interop/Cargo.toml interop-quinn
stack s2n-quic cargo rust s2n-quic interop/peers/s2n-quic/Cargo.toml s2n-quic-endpoint
stack quiche "cargo cmake" rust quiche interop/peers/quiche/Cargo.toml quiche-endpoint
stack quic-go go go_module
stack aioquic python3 python_stack
stack ngtcp2 "gtlsserver gtlsclient" debian_stack
cargo build --release --quiet --locked --manifest-path interop/Cargo.toml --bin interop-matrix
