#!/bin/sh
# Tests the policy natively. componentize-py writes the types of the contract into `bindings`, also for your editor.
set -eu
cd "$(dirname "$0")"
"${COMPONENTIZE_PY:-componentize-py}" -q -d wit -w policy bindings bindings
PYTHONPATH=.:bindings "${PYTHON:-python3}" -m unittest discover tests
