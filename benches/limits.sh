#!/usr/bin/env bash
# What decoding a list costs, in counts that do not depend on what else the machine does:
#   benches/limits.sh [PODS]
# Instructions and wrongly foreseen branches a pod (by valgrind's model), and how many of the instructions are in malloc and
# free, in memcpy and its like, and in maps. The rest is reading. Needs valgrind, and the peers for protobuf.
set -euo pipefail
cd "$(dirname "$0")/.."
pods=${1:-300} lists=3 # a list to warm up, one that is timed, one in which allocations are counted
case ${1:-} in -h | --help) sed -n '2,6s/^# //p' "$0"; exit 2 ;; esac

peers=${PEERS_BUILD:-$HOME/.cache/kubewire/peers}/bin/peers
compare=${CARGO_TARGET_DIR:-target}/release/compare
[ -n "${COMPARE:-}" ] && compare=$COMPARE || cargo build --release -p kubewire-benches --bin compare
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"$compare" gen -n "$pods" -o "$dir/pods.json" > /dev/null
[ -x "$peers" ] && "$peers" gen -n "$pods" -o "$dir/pods.pb" > /dev/null

printf '%-32s %12s %8s %8s %8s %8s %8s\n' 'a pod' instructions branches malloc memcpy maps UTF-8
count() {
  [ -e "$dir/pods.$1" ] || return 0
  valgrind --tool=callgrind --branch-sim=yes --callgrind-out-file="$dir/counts" \
    "$compare" list-decode -f "$dir/pods.$1" -as "$2" -transform "$3" -repeat 1 > /dev/null 2> "$dir/log"
  callgrind_annotate --auto=no --threshold=100 --show=Ir,Bcm,Bim "$dir/counts" | awk -v n=$((pods * lists)) -v name="$4" '
    { line = $0; gsub(/\([ 0-9.]*%\)/, ""); gsub(/,/, "") }
    !/^ *[0-9]/ { next }
    /PROGRAM TOTALS/ { total = $1; branches = $2 + $3; next }
    line ~ /malloc\.c|libc.*(malloc|free)/ { malloc += $1 }
    line ~ /multiarch\/mem(move|cpy|set)/ { moved += $1 }
    line ~ /btree/ { maps += $1 }
    line ~ /from_utf8/ { utf8 += $1 }
    END { printf "%-32s %12.0f %8.0f %7.0f%% %7.0f%% %7.0f%% %7.0f%%\n", name, total / n, branches / n,
          100 * malloc / total, 100 * moved / total, 100 * maps / total, 100 * utf8 / total }'
}
count json typed false 'JSON, typed'
count json typed true 'JSON, typed, no managedFields'
count json small false 'JSON, six fields'
count json packed false 'JSON, packed'
count pb typed true 'protobuf, typed'
count pb small false 'protobuf, six fields'
count pb packed false 'protobuf, packed'
