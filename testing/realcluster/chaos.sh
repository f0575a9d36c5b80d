#!/usr/bin/env bash
# Informers, handlers, queues and workers against a real kube-apiserver and etcd that are killed, stopped, compacted,
# restarted with other flags; see README.md. Prints a protocol and a summary, and ends with 1 if anything is not right.
# Usage: chaos.sh [--short] [--seed N] [--pods N]      Needs Go (where the servers are not built yet) and Linux.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
assets=${KUBEBUILDER_ASSETS:-$HOME/.cache/kubewire/assets}
if ! command -v go >/dev/null && ! [ -x "$assets/kube-apiserver" -a -x "$assets/etcd" ]; then
  echo "SKIPPED chaos against a real kube-apiserver: no Go to build it with"
  exit 0
fi
"$here/build.sh" >/dev/null
cargo build --quiet -p kubewire-realcluster
run=$(mktemp -d)
group=
cleanup() {
  code=$?
  # The program, an up.sh that is at work, and the servers: all that was started below is in one process group.
  [ -z "$group" ] || kill -9 -- "-$group" 2>/dev/null || true
  if [ "$code" -eq 0 ]; then
    rm -rf "$run" 2>/dev/null || { sleep 1; rm -rf "$run"; } # a dying server may still write
  else
    echo "the servers' logs are kept in $run"
  fi
  exit "$code"
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP
# In the background, so that a signal does not wait until it ends; with a process group of its own.
set -m
"${CARGO_TARGET_DIR:-target}/debug/kubewire-realcluster" "$run" "$@" &
group=$!
set +m
wait "$group"
