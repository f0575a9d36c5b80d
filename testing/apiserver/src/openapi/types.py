#!/usr/bin/env python3
"""Writes types.txt: names, types and patch strategies of the built-in kinds' fields, from Kubernetes' OpenAPI document.

Usage: types.py kubernetes-1.37.2/api/openapi-spec/swagger.json > types.txt

Only generally available versions, and what they refer to. types.rs reads the result and tells its form.
"""
import json
import re
import sys
from collections import defaultdict

definitions = json.load(open(sys.argv[1]))["definitions"]
META, CORE = "io.k8s.apimachinery.pkg.apis.meta.v1", "io.k8s.api.core.v1"
SCALARS = {
    ("string", None): "string",
    ("string", "byte"): "bytes",
    ("integer", "int32"): "int32",
    ("integer", "int64"): "int64",
    ("number", "double"): "double",
    ("boolean", None): "bool",
}
SPECIAL = {
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "int-or-string",
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "quantity",
    META + ".Time": "time",
    META + ".MicroTime": "micro-time",
}
packages, seen = defaultdict(dict), set()


def kinds_of(name):
    return definitions[name].get("x-kubernetes-group-version-kind", [])


def shape(schema, package):
    if "$ref" in schema:
        name = schema["$ref"].split("/")[-1]
        if name in SPECIAL:
            return SPECIAL[name]
        if "properties" not in definitions[name]:
            return "any"
        visit(name)
        home, short = name.rsplit(".", 1)
        return short if home == package else {META: "meta.", CORE: "core."}.get(home, home + ".") + short
    kind = schema.get("type")
    if kind == "array":
        return "[]" + shape(schema["items"], package)
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return "{}" + shape(schema["additionalProperties"], package)
    return SCALARS.get((kind, schema.get("format")), "any")


def visit(name):
    if name in seen:
        return
    seen.add(name)
    package, short = name.rsplit(".", 1)
    required, fields = set(definitions[name].get("required", [])), []
    for field, schema in definitions[name]["properties"].items():
        if kinds_of(name) and field in ("apiVersion", "kind"):
            continue
        text = field + ":" + shape(schema, package) + ("!" if field in required else "")
        if "x-kubernetes-patch-strategy" in schema:
            text += "@" + schema["x-kubernetes-patch-strategy"]
        if "x-kubernetes-patch-merge-key" in schema:
            text += "=" + schema["x-kubernetes-patch-merge-key"]
        fields.append(text)
    packages[package][short] = fields


for name in definitions:
    # A list of objects is an envelope, and what stands in every group (DeleteOptions, Status) is no resource.
    if len(kinds_of(name)) == 1 and re.fullmatch(r"v\d+", kinds_of(name)[0]["version"]):
        if not name.endswith("List") and not name.startswith(META):
            visit(name)

print("# Kubernetes v1.37.2, written by types.py; read by types.rs, which tells the form.")
for package in sorted(packages):
    gvks = [k for t in packages[package] for k in kinds_of(package + "." + t) if package != META]
    group, version = (gvks[0]["group"] or "core", gvks[0]["version"]) if gvks else ("-", package.rsplit(".", 1)[1])
    print("package", package, group, version)
    for short, fields in sorted(packages[package].items()):
        kind = len(kinds_of(package + "." + short)) == 1 and package != META
        print("kind" if kind else "type", short, *fields)
