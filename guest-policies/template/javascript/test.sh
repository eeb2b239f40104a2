#!/bin/sh
# Tests the policy with kaos-operator alone: the checks of a cluster with the policy's samples, and the answer to each
# file tests/NAME.yaml, which must equal tests/NAME.expected.yaml. The first run writes the expected files: read them, and
# commit them. `sh test.sh --update` writes them again.
#
# The answer has the manifests. If an object waits or is refused, the answer also has the messages and the status.
# tests/NAME.flags has flags of `render` for one file, such as `--status` or `--forbidden Secret`.
set -eu
cd "$(dirname "$0")"
operator=${KAOS_OPERATOR:-kaos-operator}
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT
crds=
[ ! -e crd.yaml ] || crds='--crds crd.yaml'
# shellcheck disable=SC2086 # two words
"$operator" policy check policy.js $crds
# shellcheck disable=SC2086 # each word is a flag
render() { "$operator" render --policy policy.js $crds -f "$input" $flags "$@"; }
differs=
for input in tests/*.yaml; do
  case $input in *.expected.yaml) continue ;; esac
  # Without a test, the shell keeps the pattern.
  [ -e "$input" ] || continue
  name=${input%.yaml}
  flags=
  [ ! -e "$name.flags" ] || flags=$(cat "$name.flags")
  code=0
  render >"$temporary/answer" 2>"$temporary/messages" || code=$?
  case $code in
    0) cat "$temporary/messages" >&2 && : >"$temporary/messages" ;;
    # An object waits, or is refused.
    1) render --status >"$temporary/answer" 2>"$temporary/messages" || [ $? = 1 ] ;;
    *) cat "$temporary/messages" >&2 && exit "$code" ;;
  esac
  # The comment and the status name the digest of the script, which changes with each edit.
  cat "$temporary/messages" "$temporary/answer" | sed -e '/^# /d' -e 's/^\( *digest: \)sha256:.*/\1…/' >"$temporary/told"
  if [ "${1:-}" = --update ] || [ ! -e "$name.expected.yaml" ]; then
    cp "$temporary/told" "$name.expected.yaml"
    echo "wrote $name.expected.yaml"
  elif ! diff "$name.expected.yaml" "$temporary/told"; then
    echo "$input: the answer differs from $name.expected.yaml" >&2
    differs=yes
  fi
done
# Recorded cases of `policy replay --as-test`.
[ ! -d tests/cases ] || "$operator" policy replay tests/cases --policy policy.js || differs=yes
[ -z "$differs" ]
echo "passed"
