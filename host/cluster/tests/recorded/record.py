#!/usr/bin/env python3
"""Sends the steps of scenarios.yaml to a real API server and writes what it answered to answers.json.

    ./record.py https://127.0.0.1:6443 TOKEN

The server must run without a controller-manager, so that nobody but the steps writes. tests/recorded.rs sends the same
steps to the embedded cluster and compares.

ready.json was recorded from a server with its controllers and nodes:
    kubectl create namespace t
    kubectl apply --server-side --field-manager=one -f web.yaml && kubectl wait -n t deployment/web --for=condition=Available
    kubectl get deployment,replicaset -n t -o json --show-managed-fields
"""
import json, pathlib, ssl, sys, time, urllib.error, urllib.request
import yaml

here = pathlib.Path(__file__).parent
url, token = sys.argv[1:3]
context = ssl.create_default_context()
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
TYPES = {"apply": "application/apply-patch+yaml", "merge": "application/merge-patch+json",
         "json": "application/json-patch+json", "strategic": "application/strategic-merge-patch+json"}

answers = {}
for scenario in yaml.safe_load((here / "scenarios.yaml").read_text()):
    answers[scenario["name"]] = recorded = []
    for step in scenario["steps"]:
        (verb, path), body = next(iter(step["do"].items())), step.get("body")
        method, kind = ("PATCH", TYPES[verb]) if verb in TYPES else (verb.upper(), "application/json")
        request = urllib.request.Request(url + path, method=method, data=json.dumps(body).encode() if body is not None else None)
        request.add_header("Authorization", f"Bearer {token}")
        request.add_header("Accept", "application/json")
        request.add_header("User-Agent", "recorder")
        if body is not None:
            request.add_header("Content-Type", kind)
        try:
            answer = urllib.request.urlopen(request, context=context)
        except urllib.error.HTTPError as error:
            answer = error
        text = answer.read()
        entry = {"code": answer.status, "body": json.loads(text) if text.startswith(b"{") else text.decode()}
        if warnings := answer.headers.get_all("Warning"):
            entry["warnings"] = warnings
        recorded.append(entry)
        if step.get("wait"):
            time.sleep(2)
(here / "answers.json").write_text(json.dumps(answers, indent=1, sort_keys=True) + "\n")
