#!/usr/bin/env bash
# The tests of kubewire-envtest and kubewire-webhook that need a real etcd and kube-apiserver, then a look for leftovers.
# The programs come from KUBEBUILDER_ASSETS, else from testing/realcluster/build.sh (needs Go; minutes, once).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
export KUBEBUILDER_CONTROLPLANE_START_TIMEOUT=${KUBEBUILDER_CONTROLPLANE_START_TIMEOUT:-120s}
if [ -z "${KUBEBUILDER_ASSETS:-}" ]; then
  KUBEBUILDER_ASSETS=$(testing/realcluster/build.sh)
  export KUBEBUILDER_ASSETS
fi
# What is left is seen in a folder of its own.
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
for package in kubewire-envtest kubewire-webhook; do
  TMPDIR=$tmp timeout "${KUBEWIRE_CHECK_TIMEOUT:-900}" cargo test -p "$package" --test it -- --ignored --test-threads=2
done
# A watchdog may still be at work.
for _ in $(seq 50); do
  left=$(ls -A "$tmp"; pgrep -af -- "$tmp/" || true)
  [ -z "$left" ] && { echo "nothing is left of them"; exit 0; }
  sleep 0.2
done
printf 'left behind:\n%s\n' "$left" >&2
exit 1
