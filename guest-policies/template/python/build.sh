#!/bin/sh
# Builds the component website.wasm. It contains Python and answers all calls of WASI itself. Also writes the types of the
# contract into `bindings`, for your editor.
set -eu
cd "$(dirname "$0")"
rm -rf bindings
"${COMPONENTIZE_PY:-componentize-py}" -q -d wit -w policy componentize --stub-wasi app -o website.wasm
"${COMPONENTIZE_PY:-componentize-py}" -q -d wit -w policy bindings bindings
