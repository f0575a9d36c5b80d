#!/usr/bin/env python3
"""Writes types.txt: names, types, patch strategies and protobuf numbers of the built-in kinds' fields.

Usage: types.py MODULES > types.txt

MODULES holds Kubernetes' Go modules, as a Go module cache does: kubernetes@v1.37.2 (for its OpenAPI document),
api@v0.37.2, apimachinery@v0.37.2, ... (for the numbers, which only the tags of the Go structs tell).

Only generally available versions, and what they refer to. types.rs reads the result and tells its form.
"""
import glob
import json
import re
import sys
from collections import defaultdict

modules = sys.argv[1]
definitions = json.load(open(modules + "/kubernetes@v1.37.2/api/openapi-spec/swagger.json"))["definitions"]
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
ZEROS = {*SCALARS.values(), *SPECIAL.values()}
packages, seen = defaultdict(dict), set()
STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.M | re.S)
MEMBER = re.compile(r"^\s*(?:\w+\s+)?([\w.*\[\]]+)\s+`(.*)`", re.M)


def read_numbers(package):
    """Go's structs of a package: name -> [(JSON name or "", number, Go type, whether a zero is written as JSON)]."""
    path = package.removeprefix("io.k8s.").replace(".", "/")
    module, rest = path.split("/", 1)
    structs = {}
    for file in glob.glob(f"{modules}/{module}@v*/{rest}/*.go"):
        for name, body in STRUCT.findall(open(file).read()):
            members = structs[name] = []
            for go_type, tags in MEMBER.findall(body):
                tags = dict(re.findall(r'(\w+):"([^"]*)"', tags))
                if "protobuf" in tags and "json" in tags:
                    json_name, *options = tags["json"].split(",")
                    keeps_zero = go_type.startswith("*") or "omitempty" not in options
                    members.append((json_name, tags["protobuf"].split(",")[1], go_type, keeps_zero))
    return structs


def numbers_of(structs, name):
    """JSON name -> (number, whether a zero counts); what Go inlines has the numbers of both messages: 2.1."""
    numbers = {}
    for json_name, number, go_type, keeps_zero in structs[name]:
        if json_name:
            numbers[json_name] = (number, keeps_zero)
        else:
            for inner, (rest, keeps_zero) in numbers_of(structs, go_type.lstrip("*")).items():
                numbers[inner] = (number + "." + rest, keeps_zero)
    return numbers


STRUCTS = defaultdict(dict)


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
    if package not in STRUCTS:
        STRUCTS[package] = read_numbers(package)
    numbers = numbers_of(STRUCTS[package], short)
    required, fields = set(definitions[name].get("required", [])), []
    for field, schema in definitions[name]["properties"].items():
        if kinds_of(name) and field in ("apiVersion", "kind"):  # they stand in an envelope
            continue
        number, keeps_zero = numbers[field]
        of = shape(schema, package)
        text = f"{field}#{number}:" + ("*" if keeps_zero and of in ZEROS else "") + of
        text += "!" if field in required else ""
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

# What a client sends with a DELETE, and what a failure is answered with; they stand in every group.
visit(META + ".DeleteOptions")
visit(META + ".Status")
# What the document does not define: the metadata of any object, as an object.
definitions[META + ".PartialObjectMetadata"] = {
    "properties": {"metadata": {"$ref": "#/definitions/" + META + ".ObjectMeta"}},
    "x-kubernetes-group-version-kind": [{"group": "meta.k8s.io", "kind": "PartialObjectMetadata", "version": "v1"}],
}
visit(META + ".PartialObjectMetadata")

print("# Kubernetes v1.37.2, written by types.py; read by types.rs, which tells the form.")
for package in sorted(packages):
    kinds = [kinds_of(package + "." + t)[0] for t in packages[package] if kinds_of(package + "." + t)]
    group, version = (kinds[0]["group"] or "core", kinds[0]["version"]) if kinds else ("-", package.rsplit(".", 1)[1])
    if package == META:
        group, version = "meta.k8s.io", "v1"
    print("package", package, group, version)
    for short, fields in sorted(packages[package].items()):
        print("kind" if kinds_of(package + "." + short) else "type", short, *fields)
