#!/usr/bin/env python3
"""Writes messages.json: the protobuf field numbers of the kinds in definitions.json, from Kubernetes' generated.proto files.

    ./messages.py $(go env GOMODCACHE)/k8s.io/{api,apimachinery,apiextensions-apiserver}@v0.36.1

kubectl sends objects that it generates itself (`kubectl create deployment`) as protobuf, and accepts answers in JSON.
"""
import json, pathlib, re, sys

KINDS = [  # group folder, version, kind
    "core.v1.Namespace", "core.v1.ConfigMap", "core.v1.Secret", "core.v1.Service", "core.v1.ServiceAccount", "core.v1.Pod",
    "core.v1.Event", "apps.v1.Deployment", "apps.v1.ReplicaSet", "apps.v1.StatefulSet", "batch.v1.Job", "policy.v1.PodDisruptionBudget",
    "coordination.v1.Lease", "events.v1.Event", "rbac.v1.Role",
    "rbac.v1.RoleBinding", "rbac.v1.ClusterRole", "rbac.v1.ClusterRoleBinding", "authorization.v1.SelfSubjectAccessReview",
    "authorization.v1.SelfSubjectRulesReview", "authorization.v1.SubjectAccessReview", "autoscaling.v1.Scale",
]
FIELD = re.compile(r"^\s*(optional|repeated|required)?\s*(map<\s*string\s*,\s*[\w.]+\s*>|[\w.]+)\s+(\w+)\s*=\s*(\d+)")

messages = {}
for root in sys.argv[1:]:
    for path in sorted(pathlib.Path(root).rglob("generated.proto")):
        package = None
        for line in path.read_text().splitlines():
            if found := re.match(r"package ([\w.]+);", line):
                package = found[1]
            elif found := re.match(r"message (\w+) \{", line):
                fields = messages.setdefault(f"{package}.{found[1]}", {})
            elif package and (found := FIELD.match(line.split("//")[0])) and "option " not in line:
                label, kind, name, number = found.groups()
                if inner := re.match(r"map<\s*string\s*,\s*([\w.]+)\s*>", kind):
                    label, kind = "map", inner[1]
                if "." not in kind and f"{package}.{kind}" and kind[0].isupper():
                    kind = f"{package}.{kind}"
                fields[number] = [name, kind.lstrip("."), label or "optional"]

wanted, todo = {}, [f"k8s.io.api.{kind}" for kind in KINDS] + ["k8s.io.apimachinery.pkg.apis.meta.v1.DeleteOptions"]
while todo:
    name = todo.pop()
    if name in wanted or name not in messages:
        continue
    wanted[name] = messages[name]
    todo.extend(kind for _, kind, _ in messages[name].values())
lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(wanted[name])}" for name in sorted(wanted))
pathlib.Path(__file__).with_name("messages.json").write_text("{\n" + lines + "\n}\n")
