#!/usr/bin/env bash
# Runs the fuzz targets (tests/fuzz), one after the other, from the small files of tests/fuzz/seeds and what earlier runs
# have found; a finding is left in build-fuzz and fails.
# Files that fuzz_h5 leaves without failing are from its child processes: libhdf5 crashed there, which is what they are for.
#
#   tools/fuzz.sh SECONDS TARGET...
set -euo pipefail
seconds=$1
shift
[ -f build-fuzz/build.ninja ] || CC=clang meson setup build-fuzz -Dfuzz=true -Dtests=disabled \
  -Db_sanitize=address,undefined -Db_lundef=false -Dc_args=-fsanitize=fuzzer-no-link
for target in "$@"; do
  ninja -C build-fuzz "tests/fuzz/$target"
  corpus=build-fuzz/corpus/$target
  mkdir -p "$corpus"
  echo "== $target, $seconds seconds"
  build-fuzz/tests/fuzz/"$target" -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=25 \
    -artifact_prefix="build-fuzz/$target-" -print_final_stats=1 "$corpus" "tests/fuzz/seeds/${target#fuzz_}" 2>&1 | tail -n 12
done
