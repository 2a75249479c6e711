#!/usr/bin/env bash
# All tests with AddressSanitizer and UndefinedBehaviorSanitizer; those of threads with ThreadSanitizer.
set -euo pipefail
export UBSAN_OPTIONS=print_stacktrace=1 ASAN_OPTIONS=detect_leaks=1
[ -f build-asan/build.ninja ] ||
  meson setup build-asan -Db_sanitize=address,undefined -Db_lundef=false -Dc_args=-fno-sanitize-recover=all
meson test -C build-asan --print-errorlogs --timeout-multiplier 10
[ -f build-tsan/build.ninja ] || meson setup build-tsan -Db_sanitize=thread -Db_lundef=false
meson test -C build-tsan --print-errorlogs --timeout-multiplier 20 --suite base --suite pipeline
