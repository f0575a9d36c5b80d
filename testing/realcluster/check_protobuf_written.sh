#!/usr/bin/env bash
# What the embedded API server writes in protobuf, read by a real kube-apiserver: 20 realistic pods and one object of each
# of several kinds are taken from the one in protobuf and created in the other with those very bytes; in JSON both must
# then say the same. up.sh builds the servers where they are missing.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
run=$(mktemp -d)
api_port=${API_PORT:-26643} etcd_port=${ETCD_PORT:-22579} port=${EMBEDDED_PORT:-26743}
cleanup() { kill "$embedded" 2>/dev/null || true; "$here/down.sh" "$run"; rm -rf "$run"; }

cargo build --quiet -p kubewire-apiserver --bin kubewire-apiserver
"${CARGO_TARGET_DIR:-target}/debug/kubewire-apiserver" --port "$port" --pods 20 >"$run/embedded.log" 2>&1 &
embedded=$!
trap cleanup EXIT
APISERVER_ARGS="--disable-admission-plugins=Priority" "$here/up.sh" "$run" "$api_port" "$etcd_port"
python3 "$here/check_protobuf_written.py" "http://127.0.0.1:$port" "https://127.0.0.1:$api_port"
