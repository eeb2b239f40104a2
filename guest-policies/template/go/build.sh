#!/bin/sh
# Builds the component website.wasm. KAOS_OPERATOR names the program if `kaos-operator` is not in the PATH.
set -eu
cd "$(dirname "$0")"
# Without a build ID and paths of this machine, the same sources and the same Go give the same bytes.
GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -trimpath -buildvcs=false -ldflags=-buildid= -o website.core.wasm .
"${KAOS_OPERATOR:-kaos-operator}" policy build website.core.wasm -o website.wasm
rm website.core.wasm
