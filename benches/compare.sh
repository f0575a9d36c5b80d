#!/usr/bin/env bash
# Ours and the peers on the same work, in turn, in one run:
#   benches/compare.sh [--quick] [--rounds N] [--pods N] [--percent N] [--kubeconfig FILE] [--real-only] [--out DIR] [--force]
# --real-only leaves out what needs no API server (compare_real.sh starts one).
# --quick runs our cases small, once, and looks at the counts only; so does `cargo test --workspace`.
# Otherwise writes results.json, table.md and the plots into benches/results (or DIR). README.md tells of the method.
set -euo pipefail
cd "$(dirname "$0")/.."
real_only= rounds=3 pods=10000 percent=100 out=benches/results kubeconfig= quick= force=false
while [ $# -gt 0 ]; do
  case $1 in
    --quick) quick=yes ;;
    --force) force=true ;;
    --rounds) rounds=$2; shift ;;
    --pods) pods=$2; shift ;;
    --percent) percent=$2; shift ;;
    --kubeconfig) kubeconfig=$2; shift ;;
    --real-only) real_only=yes ;;
    --out) out=$2; shift ;;
    *) sed -n '2,6s/^# //p' "$0"; exit 2 ;;
  esac
  shift
done

if [ -n "$quick" ]; then
  exec cargo test --workspace --test quick --test allocations
fi

target=${CARGO_TARGET_DIR:-target}
cargo build --release -p kubewire-benches --bin compare
bin=${PEERS_BUILD:-$HOME/.cache/kubewire/peers}/bin
[ -x "$bin/peers" ] && [ -x "$bin/peers-cr" ] && [ -x "$bin/peers-kube" ] || benches/peers/build.sh

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
lines=$work/lines.jsonl
"$target/release/compare" machine -force="$force" -rounds "$rounds" >"$lines"
for form in json pb; do "$bin/peers" gen -n "$pods" -o "$work/pods.$form" >/dev/null; done
"$target/release/compare" gen -n "$pods" -o "$work/ours.json" >/dev/null
cmp "$work/pods.json" "$work/ours.json"

n() { echo $(($1 * percent / 100)); }
# The works, each a line: what each of the programs is told, with | between them.
works=$(
  cat <<END
compare queue-cycle -n $(n 500000)|peers queue-cycle -n $(n 500000)
compare queue-cycle-metrics -n $(n 100000)|compare priority-queue -n $(n 100000)|peers-cr priority-queue -n $(n 100000)
compare queue-delayed -n $(n 100000)|peers queue-delayed -n $(n 100000)
compare queue-ratelimited -n $(n 100000)|peers queue-ratelimited -n $(n 100000)
compare store -sizes 10000,$(n 100000) -dur 1000|peers store -sizes 10000,$(n 100000) -dur 1s
compare fifo -n $(n 300000)|peers fifo -n $(n 300000)
compare informer-fanout -n $(n 30000)|peers informer-fanout -n $(n 30000)
compare informer-fanout -n $(n 30000) -modify|peers informer-fanout -n $(n 30000) -modify|peers-kube fanout -n $(n 30000)
compare list-decode -f $work/pods.json -repeat 1|peers list-decode -f $work/pods.json -repeat 1|peers-kube list-decode -f $work/pods.json -repeat 1|peers list-decode -f $work/pods.pb -repeat 1
one-core compare list-decode -f $work/pods.json -repeat 1|one-core peers list-decode -f $work/pods.json -repeat 1|one-core peers-kube list-decode -f $work/pods.json -repeat 1|one-core peers list-decode -f $work/pods.pb -repeat 1
compare list-decode -f $work/pods.json -repeat 1 -transform -as typed|one-core compare list-decode -f $work/pods.json -repeat 1 -transform -as typed|one-core compare list-decode -f $work/pods.pb -repeat 1 -transform -as packed
compare list-decode -f $work/pods.pb -repeat 1 -transform|peers list-decode -f $work/pods.pb -repeat 1
END
  for transform in false true; do
    for form in typed packed zipped small; do echo "compare memory -f $work/pods.json -transform=$transform -as $form"; done |
      paste -sd'|' | tr -d '\n'
    for form in typed packed small; do echo "|compare memory -f $work/pods.pb -transform=$transform -as $form"; done | tr -d '\n'
    echo "|peers memory -f $work/pods.json -transform=$transform|peers memory -f $work/pods.pb -transform=$transform|peers-kube memory -f $work/pods.json -transform=$transform"
  done
)
[ -z "$real_only" ] || works=
if [ -n "$kubeconfig" ]; then
  export KUBECONFIG=$kubeconfig
  works+="
compare sync -as typed|compare sync -as typed -transform|compare sync -as packed|compare sync -as zipped|compare sync -as small|compare sync -protobuf -as typed|compare sync -protobuf -as packed|compare sync -protobuf -as small|peers sync -gzip=false|peers sync -json -gzip=false|peers-kube sync
compare e2e -n $(n 5000)|compare e2e -protobuf -n $(n 5000)|peers e2e -n $(n 5000) -gzip=false"
fi

run() {
  echo "$(date +%T) $*" >&2
  local on=()
  if [ "$1" = one-core ]; then on=(taskset -c 0); shift; fi
  if [ "$1" = compare ]; then "${on[@]}" "$target/release/$@" >>"$lines"; else "${on[@]}" "$bin/$@" >>"$lines"; fi
}

for round in $(seq "$rounds"); do
  while IFS='|' read -ra programs; do
    # Who begins changes from round to round.
    count=${#programs[@]}
    for place in $(seq 0 $((count - 1))); do
      # shellcheck disable=SC2086 # the words of the command
      run ${programs[$(((place + round) % count))]}
    done
  done <<<"${works#$'\n'}"
done

mkdir -p "$out"
"$target/release/compare" report -f "$lines" -o "$out"
