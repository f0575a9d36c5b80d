#!/usr/bin/env python3
"""Creates objects in a real API server with the bytes that the embedded one writes, and compares what both say in JSON.

Usage: check_protobuf_written.py EMBEDDED_URL REAL_URL
"""
import json
import ssl
import sys
import urllib.error
import urllib.request

embedded, real = sys.argv[1:]
PROTOBUF = "application/vnd.kubernetes.protobuf"
tls = ssl._create_unverified_context()


def ask(url, method="GET", body=None, content_type="application/json", accept="application/json"):
    headers = {"Accept": accept, "Content-Type": content_type, "Authorization": "Bearer admin-token"}
    request = urllib.request.Request(url, body, headers, method=method)
    try:
        with urllib.request.urlopen(request, context=tls if url.startswith("https") else None) as answer:
            return answer.read()
    except urllib.error.HTTPError as error:
        sys.exit(f"{method} {url}: {error.code}: {error.read()[:2000]}")


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 128:
            return value, at


def written(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out) + bytes([value])


def edited(message, number, edit):
    """The message with what `edit` makes of its fields of that number, each a message or text."""
    out, at = b"", 0
    while at < len(message):
        start = at
        tag, at = varint(message, at)
        if tag & 7 == 0:
            _, at = varint(message, at)
        elif tag & 7 == 1:
            at += 8
        else:
            size, at = varint(message, at)
            at += size
            if tag >> 3 == number:
                new = edit(message[at - size : at])
                out += b"" if new is None else written(tag) + written(len(new)) + new
                continue
        out += message[start:at]
    return out


def without_identity(body):
    """Without uid and version, which nobody may choose."""
    drop = lambda metadata: edited(edited(metadata, 5, lambda _: None), 6, lambda _: None)
    return body[:4] + edited(body[4:], 2, lambda raw: edited(raw, 1, drop))


def missing(ours, theirs, path=""):
    """What the one says and the other does not."""
    if path in ("/status", "/metadata/uid", "/metadata/resourceVersion", "/metadata/creationTimestamp", "/metadata/managedFields"):
        return []
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return [found for name, value in ours.items() for found in missing(value, theirs.get(name), f"{path}/{name}")]
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) <= len(theirs):
        return [found for at, value in enumerate(ours) for found in missing(value, theirs[at], f"{path}/{at}")]
    return [] if ours == theirs or ours in ({}, [], None) and not theirs else [f"{path}: {ours!r} and {theirs!r}"]


owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "0a1b", "controller": True, "blockOwnerDeletion": False}
metadata = {"name": "x", "namespace": "default", "labels": {"b": "2", "a": ""}, "annotations": {"example.com/a": "é 漢"}, "ownerReferences": [owner], "finalizers": ["example.com/f"]}
container = {"name": "c", "image": "i", "ports": [{"containerPort": 80, "name": "web"}], "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}},
             "livenessProbe": {"httpGet": {"port": "web", "path": "/"}, "periodSeconds": 7}, "securityContext": {"runAsUser": 0, "privileged": False}}
template = {"metadata": {"labels": {"a": "1"}}, "spec": {"containers": [container], "volumes": [{"name": "v", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}, {"name": "p", "projected": {"sources": [{"configMap": {"name": "m", "optional": True}}]}}]}}
objects = [
    ("/api/v1/namespaces/default/configmaps", {"data": {"a": "é 漢", "empty": ""}, "binaryData": {"b": "AP+A"}, "immutable": False}),
    ("/api/v1/namespaces/default/secrets", {"data": {"k": "/wD+"}, "type": "Opaque"}),
    ("/api/v1/namespaces/default/services", {"spec": {"selector": {"a": "1"}, "ports": [{"name": "m", "port": 80, "targetPort": "web"}, {"name": "n", "port": 81, "targetPort": 8081}], "clusterIP": "None"}}),
    ("/apis/apps/v1/namespaces/default/deployments", {"spec": {"replicas": 0, "paused": True, "selector": {"matchLabels": {"a": "1"}, "matchExpressions": [{"key": "a", "operator": "In", "values": ["1"]}]}, "strategy": {"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 1}}, "template": template}}),
    ("/apis/batch/v1/namespaces/default/jobs", {"spec": {"completions": 0, "suspend": True, "backoffLimit": 0, "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}}),
    ("/apis/coordination.k8s.io/v1/namespaces/default/leases", {"spec": {"holderIdentity": "h", "leaseDurationSeconds": 15, "renewTime": "2026-01-02T03:04:05.600000Z"}}),
]
for path, rest in objects:
    ask(embedded + path, "POST", json.dumps({"metadata": metadata, **rest}).encode())
namespaces, paths = set(), [path + "/x" for path, _ in objects]
for pod in json.loads(ask(embedded + "/api/v1/pods"))["items"]:
    namespaces.add(pod["metadata"]["namespace"])
    paths.append(f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}")
for name in namespaces - {"default"}:
    ask(real + "/api/v1/namespaces", "POST", json.dumps({"metadata": {"name": name}}).encode())
wrong = size = 0
for path in paths:
    body = ask(embedded + path, accept=PROTOBUF)
    assert body.startswith(b"k8s\0"), path
    size += len(body)
    ask(real + path.rsplit("/", 1)[0], "POST", without_identity(body), PROTOBUF)
    for found in missing(json.loads(ask(embedded + path)), json.loads(ask(real + path))):
        print(f"{path}{found}")
        wrong += 1
print(f"{len(paths)} objects, {size} bytes: {'the same in both' if not wrong else f'{wrong} differences'}")
sys.exit(bool(wrong))
