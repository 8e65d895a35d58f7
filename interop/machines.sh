# Three machines as network namespaces, for scripts that are run as root: a client behind a path with an MTU of 1400 bytes
# and 5 % of loss, a proxy, and a server beyond it that only the proxy can reach. To be sourced; sets $client, $proxy,
# $server and the directory $work, and removes all of them at the end.
#
#   client 192.0.2.2 (cp) -- (pc) 192.0.2.1, 198.51.100.1 proxy 10.9.0.1, fd09::1 (ps) -- (sp) 10.9.0.2, fd09::2 server
#
# The server has routes to 10.77.0.0/24 and fd77::/64 by the proxy.
client=tun-c-$$ proxy=tun-p-$$ server=tun-s-$$
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

# beyond NAME LOG COMMAND...: runs a command in the background in a namespace.
beyond() {
    local name=$1 log=$work/$2.log
    shift 2
    ip netns exec "$name" timeout 120 "$@" >> "$log" 2>&1 &
    children+=($!)
}

# in_time WHAT COMMAND...: waits until a command succeeds.
in_time() {
    local what=$1
    shift
    for _ in $(seq 200); do
        "$@" > /dev/null 2>&1 && return
        sleep 0.1
    done
    fail "$what"
}

# stop PID: ends what `beyond` has begun, as a user does.
stop() {
    kill -INT "$(pgrep -P "$1")" 2> /dev/null || true
    wait "$1" 2> /dev/null || true
}

# murder PID: the same without a chance to say goodbye.
murder() {
    kill -KILL "$(pgrep -P "$1")"
    wait "$1" 2> /dev/null || true
}

as_client() { ip netns exec "$client" "$@"; }

for name in "$client" "$proxy" "$server"; do
    ip netns add "$name"
    ip netns exec "$name" sysctl -qw net.ipv6.conf.all.accept_dad=0 net.ipv6.conf.default.accept_dad=0
    ip -n "$name" link set lo up
done
ip link add cp netns "$client" type veth peer name pc netns "$proxy"
ip link add ps netns "$proxy" type veth peer name sp netns "$server"
ip -n "$client" addr add 192.0.2.2/24 dev cp
ip -n "$proxy" addr add 192.0.2.1/24 dev pc
# The proxy's second address is beyond the client's network: the way there is by the default route.
ip -n "$proxy" addr add 198.51.100.1/32 dev lo
ip -n "$proxy" addr add 10.9.0.1/24 dev ps
ip -n "$proxy" addr add fd09::1/64 dev ps
ip -n "$server" addr add 10.9.0.2/24 dev sp
ip -n "$server" addr add fd09::2/64 dev sp
for end in "$client cp" "$proxy pc" "$proxy ps" "$server sp"; do
    set -- $end
    ip -n "$1" link set "$2" up
done
ip -n "$client" route add default via 192.0.2.1
ip -n "$client" link set cp mtu 1400
ip -n "$proxy" link set pc mtu 1400
ip -n "$server" route add 10.77.0.0/24 via 10.9.0.1
ip -n "$server" route add fd77::/64 via fd09::1
ip netns exec "$proxy" sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
if as_client tc qdisc add dev cp root netem delay 10ms loss 5% 2> /dev/null; then
    ip netns exec "$proxy" tc qdisc add dev pc root netem delay 10ms loss 5%
else
    echo "no netem: without loss"
fi
