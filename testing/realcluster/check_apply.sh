#!/usr/bin/env bash
# Server-side apply, and who owns what after other writes: 160 requests to a real kube-apiserver and to the embedded one,
# whose answers must be alike. UPDATE=1 records the real ones anew. up.sh builds the servers where they are missing.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
run=$(mktemp -d)
api_port=${API_PORT:-26843} etcd_port=${ETCD_PORT:-22779}
cleanup() { "$here/down.sh" "$run"; rm -rf "$run"; }
trap cleanup EXIT

cargo test --quiet -p kubewire-apiserver --test compared --no-run
"$here/up.sh" "$run" "$api_port" "$etcd_port"
KUBEWIRE_REAL_KUBECONFIG=$run/kubeconfig cargo test --quiet -p kubewire-apiserver --test compared -- --nocapture
echo "server-side apply beside the real API server: passed"
