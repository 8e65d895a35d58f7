#!/usr/bin/env bash
# Makes one system of the comparison ready, says how, and fails with a word if it cannot. Without a name, all of them,
# and those that cannot be are left out with a word. Systems that no package registry has are only looked for: in
# $SUTURA_OTHERS/NAME. README.md says what they are.
set -euo pipefail
cd "$(dirname "$0")/../.."

target=$(realpath "${CARGO_TARGET_DIR:-target}")
export CARGO_TARGET_DIR=$target PATH=$PATH:/usr/sbin
mkdir -p "$target/others"

fail() {
    echo "$*" >&2
    return 1
}

# packages PROGRAM PACKAGE...: installs Debian's packages if the program is not there, and may be.
packages() {
    local program=$1
    shift
    if ! command -v "$program" >/dev/null; then
        echo "installing $*"
        command -v apt-get >/dev/null || fail "there is no $program, and no apt-get to install it with" || return 1
        [ "$(id -u)" = 0 ] || fail "there is no $program: apt-get install $*" || return 1
        apt-get install --yes --quiet --no-install-recommends "$@" >/dev/null || return 1
    fi
    for package in "$@"; do
        dpkg-query --show "$package"
    done
}

sutura-cli() {
    echo "building sutura"
    cargo build --quiet --release --locked -p sutura-cli
}

sutura() {
    sutura-cli || return 1
    echo "building sutura-feed"
    cargo build --quiet --release --locked --manifest-path interop/Cargo.toml -p sutura-interop-others
}

# The tunnel in interop/others/kcp, tried with kcp-go v5.7.5.
kcp() {
    command -v go >/dev/null || fail "kcp-go: there is no go" || return 1
    (cd interop/others/kcp && go list -m github.com/xtaci/kcp-go/v5 && go build -p 1 -o "$target/others/kcp" .)
}

# Tried with 1.5.1-1+deb12u2.
srt() {
    packages srt-live-transmit srt-tools
}

# Tried with 0.0.20220316-1+b4.
wireguard-go() {
    [ -c /dev/net/tun ] || fail "wireguard-go: there is no /dev/net/tun" || return 1
    packages wireguard-go wireguard-go wireguard-tools iproute2
}

# Tried with 20210922+ds-1+b6.
kcptun() {
    packages kcptun-client kcptun
}

# The browser, and what joins namespaces.
tunnel-tools() {
    packages chromium chromium || return 1
    packages socat socat || return 1
    packages ip iproute2
}

# by_hand NAME PROGRAM...: whether the programs of a system are there.
by_hand() {
    local name=$1 program
    shift
    [ -n "${SUTURA_OTHERS:-}" ] || fail "$name: no package registry has it, and SUTURA_OTHERS is not set" || return 1
    for program in "$@"; do
        [ -x "$SUTURA_OTHERS/$name/$program" ] || fail "$name: there is no $SUTURA_OTHERS/$name/$program" || return 1
    done
    echo "$name $(cat "$SUTURA_OTHERS/$name/commit" 2>/dev/null || echo 'of an unknown commit')"
}

quiche-fork() {
    by_hand quiche-fork quiche-server quiche-client
}

xquic() {
    by_hand xquic test_server test_client
}

hysteria() {
    by_hand hysteria hysteria
}

# Those of this comparison; that of tunnels has others.
all="sutura kcp srt wireguard-go quiche-fork xquic"
tunnels="sutura-cli tunnel-tools kcptun hysteria"
if [ $# -gt 0 ]; then
    [[ " $all $tunnels " == *" $1 "* ]] || fail "usage: $0 [NAME], a name of: $all $tunnels"
    "$1"
else
    sutura
    for name in ${all#sutura }; do
        "$name" || echo "left out: $name" >&2
    done
fi
