#!/usr/bin/env bash
# clang-tidy (rules in .clang-tidy) and cppcheck over the library, the command and the examples; any finding fails.
#
#   tools/lint.sh BUILD
set -euo pipefail
build=$1
result=0
find src cli examples -name '*.c' -print0 |
  xargs -0 -n 1 -P "$(nproc)" clang-tidy -p "$build" --quiet --warnings-as-errors='*' || result=1
cppcheck --quiet --std=c11 --error-exitcode=1 --inline-suppr --enable=warning,performance,portability \
  --suppressions-list=tools/cppcheck.txt -D__x86_64__ -D__GNUC__ -I include -I src -j "$(nproc)" src cli examples || result=1
exit $result
