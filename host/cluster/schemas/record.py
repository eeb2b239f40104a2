#!/usr/bin/env python3
"""Writes definitions.json: the OpenAPI v3 schemas of the kinds that the embedded cluster serves.

    KUBECONFIG=... ./record.py

The descriptions are Kubernetes' own (Apache-2.0). Reads them from a real API server with kubectl, keeps what the kinds below reach, and drops the zero-value `default`s
that Go's generator adds to every required field: they are no defaults that anybody applies.
"""
import json, pathlib, subprocess

KINDS = {
    "api/v1": ["Namespace", "ConfigMap", "Secret", "Service", "ServiceAccount", "Event", "Pod", "Node", "Binding",
               "PersistentVolumeClaim"],
    "apis/apps/v1": ["Deployment", "ReplicaSet", "StatefulSet", "Scale"],
    "apis/batch/v1": ["Job"],
    "apis/policy/v1": ["PodDisruptionBudget"],
    "apis/coordination.k8s.io/v1": ["Lease"],
    "apis/events.k8s.io/v1": ["Event"],
    "apis/discovery.k8s.io/v1": ["EndpointSlice"],
    "apis/policy/v1": ["PodDisruptionBudget"],
    "apis/rbac.authorization.k8s.io/v1": ["Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"],
    "apis/authorization.k8s.io/v1": ["SelfSubjectAccessReview", "SubjectAccessReview", "SelfSubjectRulesReview"],
    "apis/apiextensions.k8s.io/v1": ["CustomResourceDefinition"],
}
PREFIX = "#/components/schemas/"


def refs(node):
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "$ref" and isinstance(value, str):
                yield value.removeprefix(PREFIX)
            else:
                yield from refs(value)
    elif isinstance(node, list):
        for value in node:
            yield from refs(value)


def tidy(node):
    if isinstance(node, dict):
        if node.get("default") in ({}, "", 0, False, None) and "default" in node:
            node = {k: v for k, v in node.items() if k != "default"}
        if "allOf" in node and len(node["allOf"]) == 1:
            node = {**{k: v for k, v in node.items() if k != "allOf"}, **node["allOf"][0]}
        return {k: tidy(v) for k, v in node.items()}
    if isinstance(node, list):
        return [tidy(v) for v in node]
    return node


found = {}
for path, kinds in KINDS.items():
    document = json.loads(subprocess.check_output(["kubectl", "get", "--raw", f"/openapi/v3/{path}"], stderr=subprocess.DEVNULL))
    schemas = document["components"]["schemas"]
    group, _, version = path.removeprefix("apis/").removeprefix("api/").rpartition("/")
    todo = [name for name, schema in schemas.items()
            if any(g.get("kind") in kinds and g.get("group") in (group, "autoscaling") and g.get("version") == version
                   for g in schema.get("x-kubernetes-group-version-kind", []))]
    while todo:
        name = todo.pop()
        if name not in found:
            found[name] = schema = tidy(schemas[name])
            kinds_of = schema.get("x-kubernetes-group-version-kind", [])
            if len(kinds_of) > 1:
                del schema["x-kubernetes-group-version-kind"]
            todo.extend(refs(schema))

lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(found[name], sort_keys=True)}" for name in sorted(found))
pathlib.Path(__file__).with_name("definitions.json").write_text("{\n" + lines + "\n}\n")
