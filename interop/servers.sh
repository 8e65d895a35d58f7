# Sourced by the scripts beside it: $python with the foreign stacks, a directory $work, and servers
# that end with the script.
interop/setup.sh
python=$PWD/interop/.venv/bin/python
# With the features that `cargo test --workspace` builds, so that nothing is built twice.
cargo build --quiet --workspace --bins --examples
built=$(realpath "${CARGO_TARGET_DIR:-target}")/debug

work=$(mktemp --directory)
servers=()
cleanup() {
    for server in "${servers[@]}"; do
        kill "$server" 2>/dev/null || true
    done
    wait
    rm -rf "$work"
}
trap cleanup EXIT

# start NAME COMMAND...: starts a server, which prints its address first; sets `address`.
start() {
    local name=$1
    shift
    : >"$work/$name.out" # of an earlier server of that name
    "$@" >"$work/$name.out" 2>"$work/$name.err" &
    servers+=($!)
    for _ in $(seq 100); do
        address=$(head -n 1 "$work/$name.out" | grep --only-matching '127\.0\.0\.1:[0-9]*' |
            head -n 1) || true
        [[ -n $address ]] && return
        sleep 0.1
    done
    echo "FAIL $name did not start"
    cat "$work/$name.err"
    exit 1
}
