#!/bin/sh
# Builds the component mcpserver.wasm, or the file of the first argument. The library and the exports come from the
# template for Python, and YAML is read by PyYAML. `pip install -r requirements.txt` installs what the build needs.
set -eu
cd "$(dirname "$0")"
packages=$("${PYTHON:-python3}" -c 'import os, yaml; print(os.path.dirname(os.path.dirname(yaml.__file__)))')
"${COMPONENTIZE_PY:-componentize-py}" -q -d ../../../wit/policy.wit -w policy componentize --stub-wasi \
  -p . -p ../../template/python -p "$packages" app -o "${1:-mcpserver.wasm}"
