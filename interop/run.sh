#!/usr/bin/env bash
# Lets other HTTP/3 stacks talk to this one, in both roles, and compares every file that was
# transferred, and the order in which we send. Exits with 1 if anything differs or fails.
set -euo pipefail
cd "$(dirname "$0")/.."

source interop/servers.sh

"$python" interop/make_files.py "$work"
(cd "$work/files" && sha256sum -- *.bin >../sums)
paths=()
for file in "$work"/files/*.bin; do
    paths+=("/${file##*/}")
done

failed=0
# check LABEL SERVER COMMAND...: runs a client, which saves to $out, and compares the files.
check() {
    local label=$1 server=$2 start=$SECONDS
    shift 2
    if timeout 60 "$@" >"$work/client.log" 2>&1 &&
        (cd "$out" && sha256sum --strict --quiet --check ../sums) >>"$work/client.log" 2>&1; then
        echo "ok   $label ($((SECONDS - start)) s)"
    else
        failed=1
        echo "FAIL $label"
        tail -n 30 "$work/client.log"
        tail -n 10 "$work/$server.err"
    fi
    rm -rf "$out"
    mkdir "$out"
}
out=$work/out
mkdir "$out"

identity=("$work/cert.pem" "$work/key.pem")
start ours "$built/examples/file_server" "$work/files" 127.0.0.1:0 "${identity[@]}"
aioquic=("$python" interop/aioquic_client.py
    --address "$address" --ca "$work/cert.pem" --out "$out" "${paths[@]}")
curl=("$python" interop/curl_client.py
    --address "$address" --ca "$work/cert.pem" --out "$out" "${paths[@]}")
check "aioquic from us" ours "${aioquic[@]}" --priority "u=1, i"
check "aioquic from us, asking for coding" ours "${aioquic[@]}" --priority "u=1, exp_b=3"
check "aioquic from us, after version negotiation" ours "${aioquic[@]}" --first-version-2
check "aioquic from us, after a key update" ours "${aioquic[@]}" --update-keys
for cipher in AES_128_GCM_SHA256 AES_256_GCM_SHA384 CHACHA20_POLY1305_SHA256; do
    check "aioquic from us, $cipher" ours "${aioquic[@]}" --cipher "$cipher"
done
check "curl from us, in turn" ours "${curl[@]}" --priority "u=1, i"
check "curl from us, together" ours "${curl[@]}" --together
check "curl from us, asking for coding" ours "${curl[@]}" --together --priority "u=1, i, exp_b=3"
if ! grep --quiet "coding negotiated: false" "$work/ours.err" ||
    grep --quiet "coding negotiated: true" "$work/ours.err"; then
    failed=1
    echo "FAIL coding towards those who do not know of it"
fi

start command "$built/sutura" serve "$work/files" --listen 127.0.0.1:0 --json --verbose \
    --fec 3 --cert "${identity[0]}" --key "${identity[1]}"
mkdir "$work/qlog"
aioquic_command=("$python" interop/aioquic_client.py
    --address "$address" --ca "$work/cert.pem" --out "$out" "${paths[@]}")
check "aioquic from the command" command "${aioquic_command[@]}" --qlog "$work/qlog"
if "$built/sutura" qlog --json "$work"/qlog/*.qlog >"$work/analysis.json" &&
    "$python" interop/check_qlog.py "$work/files" <"$work/analysis.json"; then
    echo "ok   the analysis of aioquic's record"
else
    failed=1
    echo "FAIL the analysis of aioquic's record"
fi
check "aioquic from the command, lengths by HEAD" command "${aioquic_command[@]}" --head
check "aioquic from the command, too large a head" command "${aioquic_command[@]}" --large-head 100000
if ! grep --quiet "request on stream .* refused, 431" "$work/command.err"; then
    failed=1
    echo "FAIL the log of a request with too large a head"
fi
check "curl from the command" command "$python" interop/curl_client.py \
    --address "$address" --ca "$work/cert.pem" --out "$out" --together "${paths[@]}"

start retrying "$built/sutura" serve "$work/files" --listen 127.0.0.1:0 --json --retry \
    --cert "${identity[0]}" --key "${identity[1]}"
check "aioquic from the command, after a Retry" retrying "$python" interop/aioquic_client.py \
    --address "$address" --ca "$work/cert.pem" --out "$out" "${paths[@]}"
check "curl from the command, after a Retry" retrying "$python" interop/curl_client.py \
    --address "$address" --ca "$work/cert.pem" --out "$out" --together "${paths[@]}"
check "we from the command, after a Retry" retrying "$built/sutura" \
    get --ca "$work/cert.pem" --out "$out" "${paths[@]/#/https://$address}"

for retry in "" --retry; do
    start "aioquic$retry" "$python" interop/aioquic_server.py \
        --cert "${identity[0]}" --key "${identity[1]}" $retry "$work/files"
    check "we from aioquic $retry" "aioquic$retry" "$built/examples/file_client" \
        "$out" localhost "$address" "$work/cert.pem" "${paths[@]}"
    check "the command from aioquic $retry" "aioquic$retry" "$built/sutura" \
        get --ca "$work/cert.pem" --out "$out" --fec 3 "${paths[@]/#/https://$address}"
done

interop/priorities.sh || failed=1

if ((failed)); then
    echo "interoperability: FAILED" >&2
    exit 1
fi
echo "interoperability: all well"
