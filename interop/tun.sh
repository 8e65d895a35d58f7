#!/usr/bin/env bash
# Whole machines in a tunnel of IP packets, in network namespaces of their own: `interop/tun.sh SUTURA`, where SUTURA is
# the command. Needs root, iproute2, ping and python3.
set -euo pipefail
sutura=$(realpath "$1")
cd "$(dirname "$0")"
source machines.sh

through() { as_client ip route get "$1" | grep -q 'dev sutura0'; }
outside() { as_client ip route get "$1" | grep -q 'dev cp'; }

echo "tester 0123456789abcdef" > "$work/tokens"
echo 0123456789abcdef > "$work/token"
serve() {
    beyond "$proxy" serve "$sutura" tunnel serve --state-dir "$work/state" --token-file "$work/tokens" \
        --allow 'ip/10.9.0.2:*' --allow 'ip/[fd09::2]:*' --tun 10.77.0.1/24,fd77::1/64 --audit "$work/audit.jsonl" "$@"
    serving=${children[-1]}
}
connect() {
    beyond "$client" connect "$sutura" tunnel connect "$@" --insecure --token-file "$work/token" --tun
    connected=${children[-1]}
}

serve
in_time "no device at the proxy" ip -n "$proxy" link show suturap0
connect 192.0.2.1
beyond "$server" server python3 tun_transfer.py serve
in_time "no route into the tunnel" through 10.9.0.2

echo "ping:"
as_client ping -q -c 20 -i 0.1 -W 2 10.9.0.2 | tail -n 2 || fail "no ping"
echo "ping over IPv6:"
as_client ping -q -c 20 -i 0.1 -W 2 fd09::2 | tail -n 2 || fail "no ping over IPv6"
# What is not allowed is answered, not swallowed.
as_client ip route replace 10.9.0.1 dev sutura0
as_client ip route replace fd09::1 dev sutura0
denied() { { as_client ping -c 1 -W 2 "$1" || true; } | grep -qi "$2"; }
in_time "no refusal" denied 10.9.0.1 "Packet filtered"
in_time "no refusal over IPv6" denied fd09::1 "administratively prohibited"
# Longer than a datagram: the kernel cuts it, and all of it arrives.
long() { as_client ping -q -c 2 -W 2 -s 1400 "$1"; }
in_time "no fragments" long 10.9.0.2
in_time "no fragments over IPv6" long fd09::2
# The other end may not cut: it is told what fits.
too_long() { { ip netns exec "$server" ping -c 1 -W 2 -M do -s 1380 "$1" 2>&1 || true; } | grep -qiE "frag needed|too big|too long"; }
in_time "no word of what fits" too_long 10.77.0.2
echo "TCP:"
as_client python3 tun_transfer.py fetch 10.9.0.2 4000000 || fail "no transfer"
as_client python3 tun_transfer.py fetch fd09::2 4000000 || fail "no transfer over IPv6"

# The proxy dies in the middle of a transfer and comes back: the transfer goes on.
as_client timeout 60 python3 tun_transfer.py fetch 10.9.0.2 40000000 > "$work/fetch.log" 2>&1 &
fetching=$!
sleep 0.3
murder "$serving"
kill -0 "$fetching" || fail "the transfer was over too soon"
sleep 1
through 10.9.0.2 || fail "the device went with the connection"
serve
wait "$fetching" || fail "the transfer did not outlive the proxy"
echo "TCP with the proxy killed and started again:"
cat "$work/fetch.log"
stop "$connected"
as_client ip link show sutura0 > /dev/null 2>&1 && fail "the device is left"

stop "$serving"
serve --allow '*'

# Everything through the tunnel, but the way to the proxy; a proxy that does not answer comes first.
connect 203.0.113.9 198.51.100.1 --connect-timeout 2 --route 0.0.0.0/0 --route ::/0
in_time "no default route into the tunnel" through 203.0.113.200
outside 198.51.100.1 || fail "the tunnel leads into itself"
outside 203.0.113.9 || fail "the way to the other proxy leads into the tunnel"
as_client ping -q -c 5 -i 0.1 -W 2 10.9.0.2 | tail -n 2 || fail "no ping with all routed into the tunnel"
murder "$serving"
serve --allow '*'
again() { as_client ping -c 1 -W 1 10.9.0.2; }
in_time "no connection to the second proxy any more" again
# The machine moves: its address and all routes of its own go, and others come.
ip -n "$client" addr flush dev cp scope global
ip -n "$client" addr add 192.0.2.77/24 dev cp
ip -n "$client" route add default via 192.0.2.1
in_time "no way to the proxy after a move" again
# An outage that ends the connection: the same device goes on, with the same addresses.
device=$(as_client ip -o link show sutura0 | cut -d: -f1)
ip -n "$proxy" link set pc down
sleep 14
ip -n "$proxy" link set pc up
in_time "no connection after an outage" again
[ "$(as_client ip -o link show sutura0 | cut -d: -f1)" = "$device" ] || fail "the device was made anew"
stop "$connected"
outside 203.0.113.200 || fail "routes are left"
as_client ip route show proto 83 | grep -q . && fail "ways to proxies are left"

# A proxy without a device, and one that lets nobody send packets.
stop "$serving"
beyond "$proxy" plain "$sutura" tunnel serve --state-dir "$work/state" --token-file "$work/tokens" --allow '*'
says() {
    { as_client timeout 20 "$sutura" tunnel connect 192.0.2.1 --insecure --token-file "$work/token" --tun 2>&1 || true; } |
        grep -q -- "$1"
}
in_time "a proxy without a device does not say so" says "carries no IP packets (--tun"
stop "${children[-1]}"
grep -q '"kind":"ip"' "$work/audit.jsonl" && grep -q '"assigned":\["10.77.0.2","fd77::2"\]' "$work/audit.jsonl" \
    || fail "nothing in the audit"
echo passed
