#!/usr/bin/env bash
# What one operation costs at 1,000 to 1,000,000 keys or objects, ours and client-go's in turn:
#   benches/scaling.sh [--rounds N] [--out DIR] [--force]
# Writes scaling.json, scaling.md and scaling.svg into benches/results (or DIR); some 10 minutes, 5 GB of memory.
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=3 out=benches/results force=false
while [ $# -gt 0 ]; do
  case $1 in
    --rounds) rounds=$2; shift ;;
    --out) out=$2; shift ;;
    --force) force=true ;;
    *) sed -n '2,4s/^# //p' "$0"; exit 2 ;;
  esac
  shift
done

target=${CARGO_TARGET_DIR:-target}
cargo build --release -p kubewire-benches --bin compare
peers=${PEERS_BUILD:-$HOME/.cache/kubewire/peers}/bin/peers
[ -x "$peers" ] || benches/peers/build.sh

lines=$(mktemp)
trap 'rm -f "$lines"' EXIT
"$target/release/compare" machine -force="$force" -rounds "$rounds" >"$lines"
for n in 1000 10000 100000 1000000; do
  echo "{\"impl\":\"scale\",\"n\":$n}" >>"$lines"
  # Small sizes are over in less than the clock and the scheduler are good for: many runs, and the median of them.
  repeat=$((1000000 / n)); [ "$repeat" -lt 100 ] || repeat=100
  [ "$repeat" -gt 1 ] || repeat=2
  for round in $(seq "$rounds"); do
    while read -r work; do
      for program in "$target/release/compare" "$peers"; do
        case $program/$work in */peers/priority-queue*) continue ;; esac
        echo "$(date +%T) $n $(basename "$program") $work" >&2
        # shellcheck disable=SC2086 # the words of the command
        "$program" $work -n "$n" -repeat "$(case $work in queue-delayed*) echo 3 ;; *) echo "$repeat" ;; esac)" >>"$lines"
      done
    done <<END
queue-cycle -workers 1
priority-queue -workers 1
queue-delayed
queue-ratelimited
fifo
informer-fanout -handlers 1
END
    for program in "$target/release/compare" "$peers"; do
      "$program" store -n "$n" -repeat "$((repeat < 20 ? repeat : 20))" -workers 1 -dur "$([ "$program" = "$peers" ] && echo 50ms || echo 50)" >>"$lines"
    done
  done
done
mkdir -p "$out"
"$target/release/compare" scaling -f "$lines" -o "$out"
