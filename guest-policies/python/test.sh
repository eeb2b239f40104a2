#!/bin/sh
# Tests the library for authors and the policy for MCPServers natively. componentize-py writes the types of the contract
# into target/python-bindings.
set -eu
cd "$(dirname "$0")"
bindings=../../target/python-bindings
rm -rf "$bindings"
"${COMPONENTIZE_PY:-componentize-py}" -q -d ../../wit/policy.wit -w policy bindings "$bindings"
export PYTHONDONTWRITEBYTECODE=1
PYTHONPATH=../template/python:$bindings "${PYTHON:-python3}" -m unittest discover tests
cd mcpserver
PYTHONPATH=.:../../template/python:../$bindings "${PYTHON:-python3}" -m unittest discover tests
