#!/usr/bin/env bash
# First sync and the way of an update on a real API server, ours and the peers' in turn, in one run:
#   benches/compare_real.sh [--pods N] [flags of compare.sh]
# Starts etcd and kube-apiserver on loopback (API_PORT, ETCD_PORT), loads N pods (20,000), runs compare.sh --real-only with
# the flags, and stops everything. Figures go where compare.sh puts them, by default into benches/results/real.
set -euo pipefail
cd "$(dirname "$0")/.."
pods=20000 flags=()
while [ $# -gt 0 ]; do
  case $1 in
    --pods) pods=$2; shift ;;
    -h | --help) sed -n '2,5s/^# //p' "$0"; exit 2 ;;
    *) flags+=("$1") ;;
  esac
  shift
done

bin=${PEERS_BUILD:-$HOME/.cache/kubewire/peers}/bin
[ -x "$bin/peers" ] && [ -x "$bin/peers-kube" ] || benches/peers/build.sh
cargo build --release -p kubewire-benches --bin compare

run=$(mktemp -d)
cleanup() { testing/realcluster/down.sh "$run"; rm -rf "$run" 2>/dev/null || { sleep 1; rm -rf "$run"; }; }
trap cleanup EXIT
# The writer shall not be held back by fairness between clients.
kubeconfig=$(APISERVER_ARGS=${APISERVER_ARGS:-"--max-requests-inflight=1000 --max-mutating-requests-inflight=1000"} \
  testing/realcluster/up.sh "$run" "${API_PORT:-26443}" "${ETCD_PORT:-22379}")
"$bin/peers" load -kubeconfig "$kubeconfig" -n "$pods" -protobuf -concurrency 16
sleep 10 # until server and disk have come to rest
benches/compare.sh --out benches/results/real "${flags[@]}" --kubeconfig "$kubeconfig" --real-only
