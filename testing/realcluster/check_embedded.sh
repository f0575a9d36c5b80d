#!/usr/bin/env bash
# Run the pod controller example against its embedded API server and read what it prints, as a user would.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=$(mktemp)
fail() { echo "FAILED: $1"; echo "--- output"; cat "$out"; exit 1; }
want() { grep -Eq "$1" "$out" || fail "no line matches: $1"; }

cargo build --quiet --example pod_controller
example=${CARGO_TARGET_DIR:-target}/debug/examples/pod_controller

"$example" --for 10s >"$out" 2>&1 || fail "--for 10s ended with $?"
want 'Sync/Add/Update for Pod '
want 'Pod [a-z0-9-]+/[a-z0-9-]+ does not exist anymore'
[ "$(grep -Ec 'rror syncing pod.*broken' "$out")" -eq 5 ] || fail "the failing key was not retried 5 times"
want 'ropping pod.*broken'

"$example" >"$out" 2>&1 &
pid=$!
for _ in $(seq 100); do grep -q 'Sync/Add/Update' "$out" && break; sleep 0.1; done
kill -INT "$pid"
wait "$pid" || fail "after Ctrl-C it ended with $?"

# Bad input: a clear error, a status that is not 0, never a panic.
bad() {
  local what=$1 pattern=$2; shift 2
  if timeout 60 "$example" "$@" >"$out" 2>&1; then fail "$what: ended with 0"; fi
  grep -q 'panicked' "$out" && fail "$what: panicked"
  want "$pattern"
  echo "$what: $(grep -Eim1 "$pattern" "$out")"
}
scratch=$(mktemp -d)
echo 'clusters: [[[' >"$scratch/malformed"
cat >"$scratch/good" <<K
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u, user: {}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
K
bad 'malformed kubeconfig' 'kubeconfig' --kubeconfig "$scratch/malformed"
bad 'missing kubeconfig' 'kubeconfig|No such file' --kubeconfig "$scratch/missing"
bad 'unknown context' 'context' --kubeconfig "$scratch/good" --context nowhere
bad 'wrong port' 'refused' --kubeconfig "$scratch/good" --sync-timeout 2s
bad 'invalid selector' 'selector' --selector 'a in (b'
bad 'zero workers' 'workers' --workers 0
rm -rf "$scratch" "$out"
echo "pod_controller against the embedded API server: passed"
