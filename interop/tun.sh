#!/usr/bin/env bash
# A machine in a tunnel of IP packets, in network namespaces of its own: `interop/tun.sh PROGRAM`, where PROGRAM is
# the example `tun` of sutura-tunnel. Needs root, iproute2, ping and python3. Three machines: a client behind a path
# with an MTU of 1228 bytes and 5 % of loss, a proxy, and a server beyond it that only the proxy can reach.
set -euo pipefail
program=$(realpath "$1")
cd "$(dirname "$0")"
run=$$
client=tun-c-$run proxy=tun-p-$run server=tun-s-$run
work=$(mktemp -d)
children=()

finish() {
    for child in "${children[@]}"; do kill "$child" 2> /dev/null || true; done
    wait 2> /dev/null || true
    for name in "$client" "$proxy" "$server"; do ip netns del "$name" 2> /dev/null || true; done
    rm -rf "$work"
}
trap finish EXIT

fail() {
    echo "FAILED: $*"
    tail -n 20 "$work"/*.log
    exit 1
}

# beyond NAME COMMAND...: runs a command in the background in a namespace.
beyond() {
    local name=$1
    shift
    ip netns exec "$name" timeout 120 "$@" > "$work/$name-${#children[@]}.log" 2>&1 &
    children+=($!)
}

for name in "$client" "$proxy" "$server"; do
    ip netns add "$name"
    ip -n "$name" link set lo up
done
ip link add cp netns "$client" type veth peer name pc netns "$proxy"
ip link add ps netns "$proxy" type veth peer name sp netns "$server"
ip -n "$client" addr add 192.0.2.2/24 dev cp
ip -n "$proxy" addr add 192.0.2.1/24 dev pc
ip -n "$proxy" addr add 10.9.0.1/24 dev ps
ip -n "$server" addr add 10.9.0.2/24 dev sp
for end in "$client cp" "$proxy pc" "$proxy ps" "$server sp"; do
    set -- $end
    ip -n "$1" link set "$2" up
done
ip -n "$client" link set cp mtu 1228
ip -n "$proxy" link set pc mtu 1228
ip -n "$server" route add 10.77.0.0/24 via 10.9.0.1
ip netns exec "$proxy" sysctl -qw net.ipv4.ip_forward=1
if ip netns exec "$client" tc qdisc add dev cp root netem delay 10ms loss 5% 2> /dev/null; then
    ip netns exec "$proxy" tc qdisc add dev pc root netem delay 10ms loss 5%
else
    echo "no netem: without loss"
fi

beyond "$proxy" "$program" serve 192.0.2.1:4433 10.77.0.1/24 'ip/10.9.0.2:*'
serving=${children[-1]}
beyond "$client" "$program" connect 192.0.2.1:4433
beyond "$server" python3 tun_transfer.py serve
for _ in $(seq 100); do
    ip netns exec "$client" ip route get 10.9.0.2 2> /dev/null | grep -q suturac && break
    sleep 0.1
done
ip netns exec "$client" ip route get 10.9.0.2 | grep -q suturac || fail "no route into the tunnel"

echo "ping:"
ip netns exec "$client" ping -q -c 20 -i 0.1 -W 2 10.9.0.2 | tail -n 2 || fail "no ping"
# What is not allowed is answered, not swallowed.
ip netns exec "$client" ip route replace 10.9.0.1 dev suturac0
{ ip netns exec "$client" ping -c 1 -W 2 10.9.0.1 || true; } | grep -q "Packet filtered" || fail "no refusal"
# Longer than a datagram: the kernel cuts it, and all of it arrives.
ip netns exec "$client" ping -q -c 3 -W 2 -s 1400 10.9.0.2 > /dev/null || fail "no fragments"
echo "TCP:"
ip netns exec "$client" python3 tun_transfer.py fetch 10.9.0.2 4000000 || fail "no transfer"

# The proxy dies in the middle of a transfer and comes back: the transfer goes on.
ip netns exec "$client" timeout 60 python3 tun_transfer.py fetch 10.9.0.2 12000000 > "$work/fetch.log" 2>&1 &
fetching=$!
sleep 1
kill -KILL $(pgrep -P "$serving" || echo "$serving") 2> /dev/null || true
wait "$serving" 2> /dev/null || true
sleep 1
beyond "$proxy" "$program" serve 192.0.2.1:4433 10.77.0.1/24 'ip/10.9.0.2:*'
wait "$fetching" || fail "the transfer did not outlive the proxy"
echo "TCP with the proxy killed and started again:"
cat "$work/fetch.log"
echo passed
