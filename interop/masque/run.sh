#!/usr/bin/env bash
# Tunnels of MASQUE with others, in both roles: `interop/masque/run.sh SUTURA`, where SUTURA is the command. IP packets
# (CONNECT-IP) with connect-ip-go, between network namespaces: needs root, /dev/net/tun, iproute2, ping, python3 and Go.
set -euo pipefail
sutura=$(realpath "$1")
cd "$(dirname "$0")/.."
source machines.sh
other=$work/connect-ip
(cd masque && go build -o "$other" .)
echo "tester 0123456789abcdef" > "$work/tokens"
echo 0123456789abcdef > "$work/token"
beyond "$server" server python3 tun_transfer.py serve

# check WHO: packets go both ways, of both versions, and so do connections.
check() {
    pings() { as_client ping -q -c 1 -W 1 "$1"; }
    in_time "$1: no ping" pings 10.9.0.2
    in_time "$1: no ping over IPv6" pings fd09::2
    as_client python3 tun_transfer.py fetch 10.9.0.2 1000000 || fail "$1: no transfer"
    as_client python3 tun_transfer.py fetch fd09::2 1000000 || fail "$1: no transfer over IPv6"
    echo "$1: passed"
}

beyond "$proxy" serve "$sutura" tunnel serve --state-dir "$work/state" --token-file "$work/tokens" \
    --allow 'ip/10.9.0.2:*' --allow 'ip/[fd09::2]:*' --tun 10.77.0.1/24,fd77::1/64
serving=${children[-1]}
in_time "no device at the proxy" ip -n "$proxy" link show suturap0
beyond "$client" connect "$other" connect 192.0.2.1:4433 0123456789abcdef other0
check "the client of connect-ip-go with our proxy"
stop "${children[-1]}"
stop "$serving"

# Our certificate and its key are in one file.
pair=$work/state/self-signed.pem
beyond "$proxy" other "$other" serve 192.0.2.1:4433 "$pair" "$pair" other1 10.77.0.2/32,fd77::2/128 10.9.0.0/24,fd09::/64
in_time "no device at the other proxy" ip -n "$proxy" link show other1
beyond "$client" machine "$sutura" tunnel connect 192.0.2.1 --insecure --token-file "$work/token" --tun
check "our client with the proxy of connect-ip-go"
