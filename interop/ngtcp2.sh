#!/usr/bin/env bash
# An endpoint of the matrix (see README.md) with ngtcp2: the programs of Debian's packages ngtcp2-client and
# ngtcp2-server, version 1 or newer (in bookworm from bookworm-backports). They have HTTP/3 only; so all cases but
# http3 need ALPN=h3. The client does not check certificates.
set -euo pipefail
PATH="$PATH:/usr/sbin"

unsupported() {
    exit 127
}

if [ "$TESTCASE" != http3 ] && [ "${ALPN:-}" != h3 ]; then
    unsupported
fi

host=${ADDRESS%:*}
host=${host#[}
host=${host%]}
port=${ADDRESS##*:}

# Longer than any outage.
options=(--quiet --timeout=2m)
if [ -n "${QLOGDIR:-}" ]; then
    options+=("--qlog-dir=$QLOGDIR")
fi
if [ "$TESTCASE" = chacha20 ]; then
    options+=(--ciphers=NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+CHACHA20-POLY1305)
fi

# Both roles mark packets for ECN without being told.
server() {
    case "$TESTCASE" in
        handshake | transfer | multiplexing | chacha20 | resumption | zerortt | http3 | ecn | multiconnect) ;;
        retry) options+=(--validate-addr) ;;
        v2) options+=(--preferred-versions=v2) ;;
        connectionmigration)
            case "$PREFERRED" in
                \[*) options+=("--preferred-ipv6-addr=$PREFERRED") ;;
                *) options+=("--preferred-ipv4-addr=$PREFERRED") ;;
            esac
            ;;
        *) unsupported ;;
    esac
    exec gtlsserver "${options[@]}" "--htdocs=$WWW" "$host" "$port" "$CERTS/priv.key" "$CERTS/cert.pem"
}

# Fetches URLs over one connection. The windows are smaller than the files, and raised as they arrive.
fetch() {
    local messages url
    # It exits with 0 whatever happens, but says what went wrong.
    messages=$(gtlsclient "${options[@]}" --sni=localhost --exit-on-all-streams-close "--download=$DOWNLOADS" \
        --max-data=1M --max-stream-data-bidi-local=256K "$host" "$port" "$@" 2>&1)
    if [ -n "$messages" ]; then
        printf '%s\n' "$messages" >&2
        return 1
    fi
    for url in "$@"; do
        [ -f "$DOWNLOADS/${url##*/}" ]
    done
}

# Fetches the first file, then the rest over a connection that resumes the session; to it belong the given options.
fetch_resumed() {
    local state
    state=$(mktemp --directory)
    # shellcheck disable=SC2064 # its value now
    trap "rm --recursive '$state'" EXIT
    options+=("--session-file=$state/session" "--tp-file=$state/parameters")
    options+=("$@")
    (options+=(--wait-for-ticket) && fetch "${urls[0]}")
    fetch "${urls[@]:1}"
}

client() {
    local urls url
    read -r -a urls <<<"$REQUESTS"
    case "$TESTCASE" in
        handshake | transfer | chacha20 | retry | http3 | ecn) fetch "${urls[@]}" ;;
        keyupdate)
            options+=(--key-update=100ms)
            fetch "${urls[@]}"
            ;;
        v2)
            options+=(--available-versions=v2,v1 --preferred-versions=v2,v1)
            fetch "${urls[@]}"
            ;;
        resumption) fetch_resumed --disable-early-data ;;
        zerortt) fetch_resumed ;;
        multiconnect)
            for url in "${urls[@]}"; do
                fetch "$url"
            done
            ;;
        *) unsupported ;;
    esac
}

case "$ROLE" in
    server) server ;;
    client) client ;;
    *) unsupported ;;
esac
