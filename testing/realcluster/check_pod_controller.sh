#!/usr/bin/env bash
# Run the pod controller example against a real kube-apiserver and etcd: create, edit and delete pods with kubectl,
# take its rights away, kill and restart the API server. Needs kubectl; up.sh builds the servers where they are missing.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
run=$(mktemp -d)
out=$run/controller.log
api_port=${API_PORT:-26443} etcd_port=${ETCD_PORT:-22379}
controller=
cleanup() {
  [ -z "$controller" ] || kill "$controller" 2>/dev/null || true
  "$here/down.sh" "$run"
  rm -rf "$run"
}
trap cleanup EXIT
fail() { echo "FAILED: $1"; echo "--- controller"; tail -50 "$out"; echo "--- apiserver"; tail -5 "$run/apiserver.log"; exit 1; }
# wait_line PATTERN: until the controller prints it, at most 90 s (the reflector's longest back-off is 60 s).
wait_line() {
  for _ in $(seq 900); do grep -Eq "$1" "$out" && return 0; sleep 0.1; done
  fail "no line matches: $1"
}
k() { kubectl --kubeconfig "$run/kubeconfig" --namespace default "$@"; }
pod() {
  printf '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"%s"},"spec":{"containers":[{"name":"c","image":"i"}]}}' "$1"
}

cargo build --quiet --example pod_controller
example=${CARGO_TARGET_DIR:-target}/debug/examples/pod_controller
"$here/up.sh" "$run" "$api_port" "$etcd_port"

"$example" --kubeconfig "$run/kubeconfig" --namespace default >"$out" 2>&1 &
controller=$!
pod one | k create -f - && wait_line 'Sync/Add/Update for Pod (default/)?one'
before=$(grep -Ec 'Sync/Add/Update for Pod (default/)?one' "$out")
KUBE_EDITOR="sed -i s/image:.i/image:\ j/" k edit pod one
for _ in $(seq 900); do [ "$(grep -Ec 'Sync/Add/Update for Pod (default/)?one' "$out")" -gt "$before" ] && break; sleep 0.1; done
[ "$(grep -Ec 'Sync/Add/Update for Pod (default/)?one' "$out")" -gt "$before" ] || fail "the edit did not show up"
k delete pod one --wait=false && wait_line 'Pod default/one does not exist anymore'
echo "create, edit, delete: seen"

echo "kill -9 the API server; a pod comes and a pod goes before the controller is back"
pod stays | k create -f - && wait_line 'Sync/Add/Update for Pod (default/)?stays'
pod goes | k create -f - && wait_line 'Sync/Add/Update for Pod (default/)?goes'
kill -9 "$(cat "$run/apiserver.pid")"; sleep 2
"$here/up.sh" "$run" "$api_port" "$etcd_port"
k delete pod goes --wait=false
pod comes | k create -f -
wait_line 'Pod default/goes does not exist anymore'
wait_line 'Sync/Add/Update for Pod (default/)?comes'
grep -q panicked "$out" && fail "panicked"
kill -INT "$controller"; wait "$controller" || fail "after Ctrl-C it ended with $?"
controller=
echo "API server killed and restarted: nothing lost"

if timeout 60 "$example" --kubeconfig "$run/kubeconfig" --context plain --namespace default --sync-timeout 5s >"$out" 2>&1; then
  fail "without rights it ended with 0"
fi
grep -qi forbidden "$out" || fail "it did not say forbidden"
echo "no rights: $(grep -im1 forbidden "$out" | cut -c1-200)"
echo "pod_controller against the real API server: passed"
