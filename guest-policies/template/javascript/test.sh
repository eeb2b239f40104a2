#!/bin/sh
# Tests the policy with kaos-operator alone: the checks of a cluster with the policy's samples, and the manifests of each
# file tests/NAME.yaml, which must equal tests/NAME.expected.yaml. The first run writes the expected files: read them, and
# commit them. `sh test.sh --update` writes them again.
set -eu
cd "$(dirname "$0")"
operator=${KAOS_OPERATOR:-kaos-operator}
rendered=$(mktemp)
trap 'rm -f "$rendered"' EXIT
"$operator" policy check policy.js
for input in tests/*.yaml; do
  case $input in *.expected.yaml) continue ;; esac
  expected=${input%.yaml}.expected.yaml
  "$operator" render --policy policy.js -f "$input" >"$rendered"
  # The comment names the digest of the script, which changes with each edit.
  sed -i.with-comment '/^# /d' "$rendered"
  rm -f "$rendered.with-comment"
  if [ "${1:-}" = --update ] || [ ! -e "$expected" ]; then
    cp "$rendered" "$expected"
    echo "wrote $expected"
  else
    diff "$expected" "$rendered"
  fi
done
echo "passed"
