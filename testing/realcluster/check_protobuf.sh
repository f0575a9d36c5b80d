#!/usr/bin/env bash
# List and watch pods, config maps, nodes and custom resources of a real kube-apiserver, in JSON and in protobuf, and
# compare them: the same ids, versions, labels, owners and generations. up.sh builds the servers where they are missing.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
run=$(mktemp -d)
api_port=${API_PORT:-26543} etcd_port=${ETCD_PORT:-22479}
cleanup() { "$here/down.sh" "$run"; rm -rf "$run"; }
trap cleanup EXIT

cargo build --quiet -p kubewire-examples --example protobuf
example=${CARGO_TARGET_DIR:-target}/debug/examples/protobuf
"$here/up.sh" "$run" "$api_port" "$etcd_port"

post() { # PATH JSON
  curl -ksSf -H 'Authorization: Bearer admin-token' -H 'Content-Type: application/json' \
    "https://127.0.0.1:$api_port$1" -d "$2" >/dev/null
}
owner='{"apiVersion":"v1","kind":"ConfigMap","name":"map-1","uid":"0a1b","controller":true,"blockOwnerDeletion":true}'
for n in $(seq 30); do
  labels='{"app":"web","n":"'$n'"}'
  post /api/v1/namespaces/default/configmaps '{"metadata":{"name":"map-'"$n"'","labels":'"$labels"'},"data":{"a":"é 漢"},"binaryData":{"b":"AP+A"}}'
  post /api/v1/namespaces/default/pods '{"metadata":{"name":"pod-'"$n"'","labels":'"$labels"',"finalizers":["example.com/stays"],"ownerReferences":['"$owner"']},"spec":{"containers":[{"name":"c","image":"i"}]}}'
done
post /api/v1/nodes '{"metadata":{"name":"node-1"},"spec":{"podCIDR":"10.1.0.0/24"}}'
# One that is being deleted: its finalizer keeps it.
curl -ksSf -X DELETE -H 'Authorization: Bearer admin-token' "https://127.0.0.1:$api_port/api/v1/namespaces/default/pods/pod-1" >/dev/null
names='{"plural":"things","singular":"thing","kind":"Thing","listKind":"ThingList"}'
schema='{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}'
post /apis/apiextensions.k8s.io/v1/customresourcedefinitions '{"metadata":{"name":"things.example.com"},"spec":{"group":"example.com","scope":"Namespaced","names":'"$names"',"versions":[{"name":"v1","served":true,"storage":true,"schema":'"$schema"'}]}}'
for _ in $(seq 100); do
  post /apis/example.com/v1/namespaces/default/things '{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"one","labels":{"a":"b"}}}' 2>/dev/null && break
  sleep 0.1
done

"$example" --strict --kubeconfig "$run/kubeconfig"
echo "protobuf from the real API server: passed"
