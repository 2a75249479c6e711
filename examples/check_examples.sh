#!/bin/sh
# Runs the examples as a user would: train_flowers on flowers that it draws, predict_one on a photo.
#
#   check_examples.sh TRAIN_FLOWERS PREDICT_ONE
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
lines=$(wc -l <"$here/train_flowers.c")
[ "$lines" -lt 120 ] || { echo "train_flowers.c has $lines lines; under 120 were promised"; exit 1; }
"$1" "$folder" | tee "$folder/said"
grep -q 'submission.csv: 16 answers, accuracy' "$folder/said"
[ "$(wc -l <"$folder/submission.csv")" = 17 ]
[ -f "$folder/run/best.h5" ]
# The drawn species have names, and the probabilities of all four are printed.
"$2" "$folder/run" "$here/../tests/fixtures/B08_whole.jpg" | tee "$folder/said"
[ "$(grep -c '%  [0-3] [a-z]' "$folder/said")" = 4 ]
# What can't be read is said, with the exit code for bad data.
code=0
"$2" "$folder/run" "$folder/missing.jpg" 2>"$folder/said" || code=$?
[ $code = 3 ] && grep -q "missing.jpg: can't be read" "$folder/said"
