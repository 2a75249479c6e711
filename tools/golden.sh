#!/usr/bin/env bash
# Runs the tests that compare with numbers made with Keras and shows what each of them compared.
#
#   TEPAL_GOLDEN=DIR TEPAL_GOLDEN_DATA=DIR tools/golden.sh BUILD
set -euo pipefail
build=$1
for folder in "$TEPAL_GOLDEN" "$TEPAL_GOLDEN_DATA"; do
  [ -d "$folder" ] || { echo "golden: no folder $folder; make golden GOLDEN=DIR DATA=DIR" >&2; exit 2; }
done
mapfile -t tests < <(meson test -C "$build" --list 2>/dev/null | sed -n 's/.* \/ \(.*golden.*\)/\1/p')
[ ${#tests[@]} != 0 ] || { echo "golden: no golden tests in $build (libcmocka-dev is needed)" >&2; exit 1; }
echo "golden: ${#tests[@]} test programs against $TEPAL_GOLDEN and $TEPAL_GOLDEN_DATA: ${tests[*]}"
result=0
meson test -C "$build" --print-errorlogs "${tests[@]}" || result=$?
grep -E '^\[ +(OK|FAILED|SKIPPED) +\]|skipped|allowed|difference|^=+ .* =+$' "$build/meson-logs/testlog.txt" || true
exit $result
