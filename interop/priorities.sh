#!/usr/bin/env bash
# Lets clients that know RFC 9218 and nothing of our extensions load a page over a slow link, and
# finds out from the server's qlog whether it sent everything in the order that they asked for.
# Chromium takes part if there is one; CHROMIUM=command names it, CHROMIUM= leaves it out. Exits with
# 1 if an order is wrong.
#   --table   also prints what was asked for and when it was sent, in Markdown
set -euo pipefail
cd "$(dirname "$0")/.."

table=${1:-}
source interop/servers.sh
schedulers=(eps hmm)
link="rate=20mbit delay=10ms"
page=$work/page
"$python" interop/make_files.py "$work"
"$python" interop/make_page.py "$page"
out=$work/out
mkdir "$out"
failed=0
if ! (cd interop && "$python" -m unittest test_check_priorities) >"$work/test.log" 2>&1; then
    failed=1
    echo "FAIL the checker's own tests"
    cat "$work/test.log"
fi

# load QLOG SCHEDULER CLIENT...: loads the page from a server of its own; it gets the address in
# $address and $port.
load() {
    local qlog=$work/qlog/$1 scheduler=$2 log=$work/client.log server relay
    shift 2
    servers=()
    start server "$built/sutura" serve "$page" --listen 127.0.0.1:0 --json --verbose \
        --cert "$work/cert.pem" --key "$work/key.pem" --qlog "$qlog" --scheduler "$scheduler"
    start relay "$built/sutura" link --listen 127.0.0.1:0 --to "$address" --profile "$link" --json
    port=${address#*:}
    if ! "$@" >"$log" 2>&1; then
        failed=1
        echo "FAIL the client:"
        tail -n 20 "$log"
    fi
    # Its connections are closed and their qlog is written once the server has ended.
    for server in "${servers[@]}"; do
        stop "$server"
    done
    servers=()
}

# stop PID: ends a server, which may take a moment to let responses finish.
stop() {
    kill "$1" 2>/dev/null || true
    for _ in $(seq 200); do
        kill -0 "$1" 2>/dev/null || return 0
        sleep 0.05
    done
    failed=1
    echo "FAIL a server does not end"
    kill -KILL "$1"
}

# check LABEL QLOG OPTION...: whether that load went as the options of check_priorities.py say.
check() {
    local label=$1 qlog=$2 result
    shift 2
    if result=$("$python" interop/check_priorities.py "$@" "$work/qlog/$qlog" 2>&1); then
        echo "ok   $label: $result"
    else
        failed=1
        echo "FAIL $label: $result"
    fi
}

paths=(/index.html /print.css /c.png /b.png /a.png /hero.png /data.json /defer.js /async.js /app.js
    /font.woff2 /style.css)
# As a browser might, but asked for in the least convenient order.
asked=("u=0, i" "u=7" "u=4, i" "u=4, i" "u=4, i" "u=3, i" "" "u=2" "u=2" "u=1" "u=1" "u=0")
# The same with parameters and values that mean nothing.
unknown=("u=0, i, x=1" "u=0, u=7, t=@5" "x-new=(a b;c);d, u=4, i" 'u=4, i;q=0.5, zz="u=0"'
    "u=4, i=?1, *k=:AQ==:" "i, u=9" "u=-1, y" "u=2, i=1" "a=b, u=2" "u=1;u=7" "u=1, f=1.5"
    "v=0, u=0")
# Underway, a picture is wanted at once, and what came last no longer has to.
updates=(--update "300000:/a.png:u=0, i" --update "500000:/print.css:u=2")

# each PRIORITY...: sets `options` to those that give each path its priority.
each() {
    options=()
    local priority
    for priority in "$@"; do
        options+=(--priority "$priority")
    done
}
with_aioquic() {
    timeout 60 "$python" interop/aioquic_client.py --address "$address" --ca "$work/cert.pem" \
        --out "$out" --page "$@" "${paths[@]}"
}
with_curl() {
    timeout 60 "$python" interop/curl_client.py --address "$address" --ca "$work/cert.pem" \
        --out "$out" --together --page "$@" "${paths[@]}"
}
browser=${CHROMIUM-$(command -v chromium || command -v chromium-browser || true)}
with_chromium() {
    HOME=$work timeout 30 "$browser" --headless --no-sandbox --disable-gpu --no-first-run \
        --disable-background-networking --disable-component-update --disable-sync \
        --user-data-dir="$work/profile-$port" --enable-quic \
        --origin-to-force-quic-on="localhost:$port" \
        --ignore-certificate-errors-spki-list="$(<"$work/key.sha256")" \
        --host-resolver-rules="MAP localhost 127.0.0.1" \
        --dump-dom "https://localhost:$port/"
}

for scheduler in "${schedulers[@]}"; do
    all=(--responses "${#paths[@]}")
    each "${asked[@]}"
    load "aioquic-$scheduler" "$scheduler" with_aioquic "${options[@]}" "${updates[@]}"
    check "aioquic, $scheduler" "aioquic-$scheduler" "${all[@]}" --expect urgency,order,sharing
    # It gives its streams so little credit that they share by that as much as by our turns.
    load "curl-$scheduler" "$scheduler" with_curl "${options[@]}"
    check "curl, $scheduler" "curl-$scheduler" "${all[@]}" --expect urgency,order
    load "silent-$scheduler" "$scheduler" with_curl
    check "curl, nothing said, $scheduler" "silent-$scheduler" "${all[@]}" --expect order
    each "${unknown[@]}"
    load "unknown-$scheduler" "$scheduler" with_aioquic "${options[@]}"
    check "aioquic, unknown parameters, $scheduler" "unknown-$scheduler" "${all[@]}" \
        --expect urgency,order,sharing --same-order-as "$work/qlog/curl-$scheduler"
    if [[ -n $browser ]]; then
        load "chromium-$scheduler" "$scheduler" with_chromium
        check "chromium, $scheduler" "chromium-$scheduler" "${all[@]}" --expect urgency
    else
        echo "skip chromium, $scheduler: there is no Chromium"
    fi
done

# What does not go by RFC 9218 has to be found out.
each "${asked[@]}"
load aioquic-rr aioquic with_aioquic "${options[@]}"
status=0
"$python" interop/check_priorities.py "$work/qlog/aioquic-rr" >"$work/rr.log" || status=$?
if ((status == 3)) && grep --quiet "^urgency: .* waited$" "$work/rr.log"; then
    echo "ok   rr is found to be wrong"
else
    failed=1
    echo "FAIL rr is not found to be wrong:" && cat "$work/rr.log"
fi

if [[ $table == --table ]]; then
    for client in aioquic curl silent unknown chromium; do
        loads=()
        for scheduler in "${schedulers[@]}"; do
            loads+=("$work/qlog/$client-$scheduler")
        done
        [[ -d ${loads[0]} ]] || continue
        printf '\n| %s | kB | `priority` | PRIORITY_UPDATE |' "$client"
        printf ' %s, ms |' "${schedulers[@]}"
        printf '\n|---|---|---|---|'
        printf -- '---|%.0s' "${schedulers[@]}"
        echo
        "$python" interop/check_priorities.py --table "${loads[@]}"
    done
fi
exit "$failed"
