#!/usr/bin/env bash
# Run the examples of the controller layer against their embedded API servers, and read what they print and serve.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=$(mktemp)
fail() { echo "FAILED: $1"; echo "--- output"; cat "$out"; exit 1; }
want() { grep -Eq "$1" "$out" || fail "no line matches: $1"; }

cargo build --quiet -p kubewire-examples \
  --example pod_controller_builder --example leader_election --example replica_operator
examples=${CARGO_TARGET_DIR:-target}/debug/examples

timeout 60 "$examples/pod_controller_builder" --for 10s >"$out" 2>&1 || fail "pod_controller_builder ended with $?"
want 'Sync/Add/Update for Pod '
want 'Pod [a-z0-9-]+/[a-z0-9-]+ does not exist anymore'
want 'broken'

timeout 60 "$examples/leader_election" >"$out" 2>&1 || fail "leader_election ended with $?"
want '(one|two) is killed, and leaves its lease behind'
want '(one|two) has taken over after [0-9.]+ s'
want '(one|two) is stopped; the lease is free'
want '^[0-9]+ acts, 1 hand-over, [0-9.]+ s after (one|two) was killed$'
[ "$(grep -Ec ' leads, as holder number ' "$out")" -eq 2 ] || fail "not each of them led once"

# SIGTERM drains; health and metrics are served until then.
timeout 60 "$examples/replica_operator" --leader-elect >"$out" 2>&1 &
pid=$!
for _ in $(seq 300); do grep -q 'default/shop: 5 of 5' "$out" && break; sleep 0.1; done
want 'default/shop: 5 of 5 pods are ready'
want 'somebody deletes the pod shop-'
health=$(sed -n 's/^health at //p' "$out"); metrics=$(sed -n 's/^metrics at //p' "$out")
curl --silent --fail --noproxy '*' --max-time 10 "$health" >/dev/null || fail "$health is not ready"
curl --silent --fail --noproxy '*' --max-time 10 --output "$out.metrics" "$metrics" || fail "$metrics is not served"
grep -Eq '^controller_runtime_reconcile_total\{.*controller="webset"' "$out.metrics" || fail "$metrics has no reconciles"
kill -TERM "$pid"
wait "$pid" || fail "replica_operator ended with $? after SIGTERM"
want 'default/cart: all of its pods are gone'
want '^stopped; nothing was left in flight$'
rm -f "$out" "$out.metrics"
echo "the examples of the controller layer against the embedded API server: passed"
