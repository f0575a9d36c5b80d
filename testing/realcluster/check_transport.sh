#!/usr/bin/env bash
# How many connections 50 and 150 informers hold with a real kube-apiserver, by HTTP/1.1 and HTTP/2; that one which ends
# connections all the time (GOAWAY) costs nobody anything; what gzip saves and costs. Needs Linux.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
run=$(mktemp -d)
cleanup() { "$here/down.sh" "$run"; rm -rf "$run" 2>/dev/null || { sleep 1; rm -rf "$run"; }; }
trap cleanup EXIT
cargo build --quiet ${PROFILE_ARGS:-} -p kubewire-realcluster --bin kubewire-transport
program=${CARGO_TARGET_DIR:-target}/${PROFILE_DIR:-debug}/kubewire-transport
api_port=${API_PORT:-27443} etcd_port=${ETCD_PORT:-23379}
"$here/up.sh" "$run" "$api_port" "$etcd_port" >/dev/null
timeout 300 "$program" "$run/kubeconfig" "$@"
kill "$(cat "$run/apiserver.pid")"
while kill -0 "$(cat "$run/apiserver.pid")" 2>/dev/null; do sleep 0.1; done
APISERVER_ARGS="--goaway-chance=0.02" "$here/up.sh" "$run" "$api_port" "$etcd_port" >/dev/null
timeout 300 "$program" "$run/kubeconfig" --goaway
echo "transport against the real API server: passed"
