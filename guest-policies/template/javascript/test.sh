#!/bin/sh
# Tests the policy with kaos-operator alone: the checks of a cluster with the policy's samples, and the manifests of each
# file tests/NAME.yaml, which must equal tests/NAME.expected.yaml. `sh test.sh --update` writes the expected files.
set -eu
cd "$(dirname "$0")"
operator=${KAOS_OPERATOR:-kaos-operator}
"$operator" policy check policy.js
for input in tests/*.yaml; do
  case $input in *.expected.yaml) continue ;; esac
  expected=${input%.yaml}.expected.yaml
  if [ "${1:-}" = --update ]; then
    "$operator" render --policy policy.js -f "$input" >"$expected"
  else
    "$operator" render --policy policy.js -f "$input" | diff "$expected" -
  fi
done
echo "passed"
