#!/bin/sh
# Builds the component website.wasm. It contains Python and answers all calls of WASI itself.
set -eu
cd "$(dirname "$0")"
rm -rf bindings
"${COMPONENTIZE_PY:-componentize-py}" -q -d wit -w policy componentize --stub-wasi app -o website.wasm
