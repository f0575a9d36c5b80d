#!/usr/bin/env bash
# Run examples/replica_operator against a real kube-apiserver and etcd: pods go behind its back, the API server is killed, a
# leader is killed, one is stopped at work, one loses the API server. Health and metrics are read in each phase, and in the
# end the API server's audit log says who has written when: never may two act as the leader.
# Needs kubectl, curl and python3; up.sh builds the servers where they are missing.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
run=$(mktemp -d)
# Three ports that are free, and that no outgoing connection gets while the API server is away.
port=$(python3 - <<'P'
import contextlib, random, socket
while True:
    port = random.randrange(20000, 30000)
    with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
        [stack.enter_context(socket.socket()).bind(("127.0.0.1", port + offset)) for offset in range(3)]
        break
print(port)
P
)
api_port=${API_PORT:-$port} etcd_port=${ETCD_PORT:-$((port + 1))}
api=https://127.0.0.1:$api_port
lease=9 deadline=7 retry=1 # seconds; those of the replicas that are killed and stopped
operator=${CARGO_TARGET_DIR:-target}/debug/examples/replica_operator
declare -A pids
kubelet=

cleanup() {
  code=$?
  for pid in "${pids[@]}" $kubelet; do kill -9 "$pid" && wait "$pid"; done 2>/dev/null || true
  "$here/down.sh" "$run"
  if [ "$code" -eq 0 ]; then rm -rf "$run"; else echo "all logs are kept in $run"; fi
  exit "$code"
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP
fail() {
  echo "FAILED: $1"
  for name in "${!pids[@]}"; do echo "--- $name"; tail -20 "$run/$name.log" | cut -c1-400; done
  echo "--- apiserver"; tail -5 "$run/apiserver.log"
  exit 1
}
say() { printf '%6.1f s  %s\n' "$(since "$begin")" "$*"; }
now() { date +%s.%N; }
since() { echo "$(now) $1" | awk '{printf "%.2f", $1 - $2}'; }
# until_so WHAT COMMAND…: until the command succeeds, for 90 s at most. No speed decides, but that of a takeover.
until_so() {
  local what=$1 end=$((SECONDS + 90)); shift
  while ! "$@"; do
    [ "$SECONDS" -lt "$end" ] || fail "not within 90 s: $what"
    sleep 0.1
  done
}
k() { kubectl --kubeconfig "$run/kubeconfig" --namespace default "$@"; }
serve() {
  APISERVER_ARGS="--audit-policy-file=$run/audit.yaml --audit-log-path=$run/audit.log" \
    "$here/up.sh" "$run" "$api_port" "$etcd_port" >/dev/null
}

# --- replicas

# start NAME [FLAG…]: a replica, as a service account of that name, which is its name in the lease too.
start() {
  local name=$1; shift
  : >"$run/$name.log"
  NO_COLOR=1 "$operator" --kubeconfig "$run/$name.kubeconfig" --alone --leader-elect --identity "$name" \
    --watch-tolerance 2s --grace-period 10s "$@" >>"$run/$name.log" 2>&1 &
  pids[$name]=$!
  until_so "$name serves" grep -q '^metrics at ' "$run/$name.log"
}
# get NAME health|metrics [healthz]: what it serves; the status is in the last line.
get() {
  local url; url=$(sed -n "s/^$2 at //p" "$run/$1.log")
  curl --silent --noproxy '*' --max-time 5 --write-out '\n%{http_code}\n' "${url/%readyz/${3:-readyz}}" || true
}
is_ready() { [ "$(get "$1" health | tail -1)" = 200 ]; }
is_alive() { [ "$(get "$1" health healthz | tail -1)" = 200 ]; }
# has_failed NAME CHECK: it is not ready, by that check.
has_failed() { local got; got=$(get "$1" health); [ "${got##*$'\n'}" = 500 ] && grep -qF -- "[-]$2 failed" <<<"$got"; }
# value NAME SERIES: the sum of the series whose names and labels begin so.
value() { get "$1" metrics | awk -v series="$2" 'index($0, series) == 1 { sum += $NF } END { print sum + 0 }'; }
leads() { [ "$(value "$1" 'leader_election_master_status{name="replica-operator"}')" = 1 ]; }
# is NAME SERIES OPERATOR NUMBER
is() { awk -v is="$(value "$1" "$2")" "BEGIN { exit !(is $3 $4) }"; }
want() { is "$@" || fail "$1: $2 is $(value "$1" "$2"), and is to be $3 $4"; }
has_ended() { ! kill -0 "${pids[$1]}" 2>/dev/null; }
# ended NAME STATUS: it ends with this status.
ended() {
  local status=0
  until_so "$1 ends" has_ended "$1"
  wait "${pids[$1]}" 2>/dev/null || status=$?
  [ "$status" -eq "$2" ] || fail "$1 ended with $status, not $2"
  unset "pids[$1]"
}

# --- web sets

sets() { for name in "$@"; do printf -- '---\n{apiVersion: example.com/v1, kind: WebSet, metadata: {name: %s}, spec: {replicas: %s, image: i}}\n' "${name%=*}" "${name#*=}"; done; }
pods() { # of a web set by its uid: name, uid
  k get pods -o jsonpath='{range .items[*]}{.metadata.ownerReferences[?(@.controller==true)].uid} {.metadata.name} {.metadata.uid}{"\n"}{end}' | awk -v uid="$1" '$1 == uid { print $2, $3 }'
}
# converged NAME COUNT [GONE]: it has as many pods as it wants, none of those that are gone, and says so.
converged() {
  local uid rest have
  read -r uid rest <<<"$(k get webset "$1" -o jsonpath='{.metadata.uid} {.metadata.finalizers[0]} {.spec.replicas} {.status.replicas} {.status.readyReplicas} {.metadata.generation} {.status.observedGeneration}')"
  [[ $rest =~ ^"example.com/pods $2 $2 $2 "([0-9]+)" "([0-9]+)$ ]] && [ "${BASH_REMATCH[1]}" = "${BASH_REMATCH[2]}" ] || return 1
  have=$(pods "$uid")
  [ "$(cut -d' ' -f1 <<<"$have" | sort | xargs)" = "$(seq -f "$1-%g" 0 $(($2 - 1)) | sort | xargs)" ] || return 1
  [ -z "${3:-}" ] || ! grep -qF "$3" <<<"$have"
}
all_converged() { for name in "${shops[@]}"; do converged "$name" "$1" || return 1; done; }
is_gone() { [ -z "$(k get webset "$1" --ignore-not-found -o name)" ]; }
has_event() { k get events.events.k8s.io -o jsonpath='{range .items[*]}{.reason} {.reportingController} {.regarding.kind}/{.regarding.name}{"\n"}{end}' | grep -x "$1 example.com/replica-operator WebSet/$2" >/dev/null; }
holder() { k get lease replica-operator -o jsonpath='{.spec.holderIdentity}'; }
# There is no kubelet: this makes pods ready.
make_ready() {
  local url=$api/api/v1/namespaces/default/pods
  ask() { curl --silent --insecure --noproxy '*' --max-time 5 -H 'Authorization: Bearer admin-token' "$@"; }
  while sleep 0.3; do
    for pod in $(ask "$url?fieldSelector=status.phase%3DPending" | grep -oE '"name": ?"[a-z]+-[0-9]+"' | cut -d'"' -f4 | sort -u); do
      ask -X PATCH -H 'Content-Type: application/merge-patch+json' "$url/$pod/status" -o /dev/null \
        -d '{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}' || true
    done
  done
}

cat >"$run/audit.yaml" <<'P'
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: Request, userGroups: ["system:serviceaccounts"], verbs: [create, update, patch, delete]}
P
cargo build --quiet -p kubewire-examples --example replica_operator
begin=$(now)
serve
k create -f examples/replica_operator/rbac.yaml >/dev/null
for name in alone one two three four; do
  k create serviceaccount "$name"
  k create clusterrolebinding "$name" --clusterrole replica-operator --serviceaccount "default:$name"
  sed "s/token: admin-token/token: $(k create token "$name" --duration 1h)/" "$run/kubeconfig" >"$run/$name.kubeconfig"
done >/dev/null
make_ready & kubelet=$!
say "the API server is there; the operator has the rights of rbac.yaml, and no others"

# 1. It converges, whoever deletes pods.
start alone --lease-duration 120s --renew-deadline 90s --retry-period 1s
until_so "alone leads" leads alone
is_ready alone && is_alive alone || fail "alone leads and is not ready"
sets shop=3 | k create -f - >/dev/null
until_so "shop has 3 pods" converged shop 3
until_so "an event tells of a pod" has_event PodCreated shop
want alone websets_pods_created_total == 3
uid=$(k get webset shop -o jsonpath='{.metadata.uid}')
victims=$(pods "$uid" | cut -d' ' -f2)
k delete pods shop-0 shop-1 shop-2 --now >/dev/null
until_so "shop has 3 other pods" converged shop 3 "$victims"
want alone websets_pods_created_total == 6
want alone 'controller_runtime_reconcile_total{controller="webset",result="success"}' '>=' 6
want alone 'controller_runtime_reconcile_errors_total{controller="webset"}' == 0
want alone 'controller_runtime_max_concurrent_reconciles{controller="webset"}' == 2
until_so "all work is done" is alone 'controller_runtime_active_workers{controller="webset"}' == 0
want alone 'workqueue_depth{name="webset"' == 0
want alone 'workqueue_adds_total{name="webset"' '>=' 6
say "shop: 3 pods, status, finalizer, events; 3 pods deleted behind its back, 3 made anew; $(value alone 'controller_runtime_reconcile_total{controller="webset"') reconciles, none failed"

# 2. The API server goes and comes back; the operator stays.
kill -9 "$(cat "$run/apiserver.pid")"
down=$(now)
until_so "alone is not ready without an API server" has_failed alone watches
unready=$(since "$down")
is_alive alone || fail "alone is not alive, only because the API server is away"
leads alone || fail "alone has given up its lease within its deadline"
until_so "failures are counted" is alone 'reflector_failures_in_a_row{' '>=' 1
serve
back=$(now)
victims=$(pods "$uid" | awk 'NR == 1 { print $2 }')
k delete pod shop-0 --now >/dev/null
k patch webset shop --type merge -p '{"spec":{"replicas":4}}' >/dev/null
until_so "shop has 4 pods after the outage" converged shop 4 "$victims"
say "API server killed for $(since "$down" | awk -v b="$(since "$back")" '{printf "%.1f", $1 - b}') s: /readyz failed by \"watches\" after $unready s, /healthz did not; $(since "$back") s after it was back all was as wanted"
until_so "all watches live again" is alone 'reflector_failures_in_a_row{' == 0
until_so "alone is ready again" is_ready alone
kill -0 "${pids[alone]}" || fail "the operator has ended in the outage"
k delete webset shop --wait=false >/dev/null
until_so "the finalizer lets shop go" is_gone shop
until_so "an event tells of the end" has_event Finalized shop
[ -z "$(pods "$uid")" ] || fail "pods are left of shop"
kill -TERM "${pids[alone]}"
ended alone 0
[ -z "$(holder)" ] || fail "alone has stopped and holds the lease"
say "shop deleted: its pods went first; SIGTERM: ended with 0, the lease is free"

# 3. Two replicas; the leader is killed at work.
replica() { start "$1" --lease-duration ${lease}s --renew-deadline ${deadline}s --retry-period ${retry}s --think 1s; }
standby() {
  replica "$1"
  is_ready "$1" || fail "the standby $1 is not ready"
  want "$1" 'leader_election_master_status{name="replica-operator"}' == 0
  want "$1" 'controller_runtime_reconcile_total{controller="webset"' == 0
}
replica one
until_so "one leads" leads one
standby two
shops=(ant bee cat dog)
sets ant=2 bee=2 cat=2 dog=2 | k create -f - >/dev/null
until_so "one has made a pod" is one websets_pods_created_total '>=' 1
until_so "one is at work" is one 'controller_runtime_active_workers{controller="webset"}' == 2
until_so "more waits" is one 'workqueue_depth{name="webset"' '>=' 1
want two 'controller_runtime_reconcile_total{controller="webset"' == 0
queued=$(value one 'workqueue_depth{name="webset"')
killed=$(now)
kill -9 "${pids[one]}"
ended one 137 2>/dev/null
until_so "two takes over" leads two
takeover=$(since "$killed")
until_so "two does what one has left" all_converged 2
want two 'controller_runtime_reconcile_errors_total{controller="webset"}' == 0
say "two replicas; one killed at work with $queued sets in its queue: two led $takeover s later (lease $lease s, retry period $retry s), and did the work"

# 4. SIGTERM at work: the running ends, the lease is given up, the rest is the next one's.
standby three
until_so "two has no more to do" is two 'controller_runtime_active_workers{controller="webset"}' == 0
sets ant=3 bee=3 cat=3 dog=3 | k apply -f - >/dev/null 2>&1
until_so "two is at work" is two 'controller_runtime_active_workers{controller="webset"}' == 2
kill -TERM "${pids[two]}"
stopped=$(now)
draining=
for _ in 1 2 3; do
  has_failed two manager && is two 'controller_runtime_active_workers{controller="webset"}' '>=' 1 && leads two && draining=yes && break
done
ended two 0
drained=$(since "$stopped")
grep -q '^stopped; nothing was left in flight$' "$run/two.log" || fail "two left something in flight"
until_so "three leads" leads three
handover=$(since "$stopped")
until_so "three does what two has left" all_converged 3
[ -n "$draining" ] || fail "two was not seen draining: not ready by \"manager\", still leading, and at work"
say "SIGTERM at work: not ready by \"manager\", still the leader until its work was done; ended with 0 after $drained s, three led after $handover s"

# 5. A leader that cannot reach the API server ends; a standby waits.
standby four
kill -9 "$(cat "$run/apiserver.pid")"
down=$(now)
ended three 1
lost=$(since "$down")
grep -q 'leader election lost' "$run/three.log" || fail "three did not say that it has lost the lease"
until_so "four is not ready without an API server" has_failed four watches
leads four && fail "four leads without an API server"
serve
back=$(now)
until_so "four leads" leads four
led=$(since "$back")
k delete pods ant-0 bee-1 --now >/dev/null
sets ant=2 bee=2 cat=2 dog=2 | k apply -f - >/dev/null 2>&1
until_so "four does the work" all_converged 2
until_so "four is ready" is_ready four
say "API server killed under a leader: three ended with 1 after $lost s (renew deadline $deadline s); four led $led s after it was back"
kill -TERM "${pids[four]}"
ended four 0
[ -z "$(holder)" ] || fail "four has stopped and holds the lease"

# 6. Who has written when, by the API server's own log.
"$here/check_leaders.py" "$run/audit.log" --lease $lease --retry $retry \
  alone:released one:killed@"$killed" two:released@"$stopped" three:lost four:released || fail "see above"
# What the judge is worth: one write that is another one's.
sed '$!b; s/serviceaccount:default:four/serviceaccount:default:two/' <(grep -v '"resource":"leases"' "$run/audit.log") >"$run/forged.log"
cat <(grep '"resource":"leases"' "$run/audit.log") "$run/forged.log" >"$run/forged_whole.log"
if "$here/check_leaders.py" "$run/forged_whole.log" --lease $lease --retry $retry \
  alone:released one:killed@"$killed" two:released@"$stopped" three:lost four:released >/dev/null; then
  fail "a write of two in the term of four was not seen"
fi
grep -q panicked "$run"/*.log && fail "something panicked"
say "admission webhooks that the API server really calls: testing/envtest/check.sh"
echo "replica_operator against the real API server: passed"
