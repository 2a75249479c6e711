#!/usr/bin/env bash
# Trains, stops, resumes and predicts on a real TPU or GPU in under three minutes, and compares with the CPU. What it
# prints at the end is what a person should send back.
#
#   tools/check_device.sh tpu|gpu|PLUGIN.so [TEPAL]
set -uo pipefail
device=${1:?tpu, gpu, or the path of a PJRT plugin} tepal=${2:-build/tepal}
folder=$(mktemp -d) report=$(mktemp)
trap 'rm -rf "$folder" "$report"' EXIT
failed=0

say() { echo "$*" | tee -a "$report"; }

# step NAME COMMAND...: runs it for at most two minutes, tells how it went and how long it took.
step() {
  local name=$1 start=$SECONDS
  shift
  if timeout 120 "$@" >"$folder/log" 2>&1; then
    say "ok     $name ($((SECONDS - start)) s)"
  else
    say "FAILED $name (exit $?, $((SECONDS - start)) s)"
    tail -5 "$folder/log" | tee -a "$report"
    failed=1
  fi
  cat "$folder/log" >>"$folder/all"
}

# Two answers for each picture: how many are the same.
agreement() {
  python3 - "$1" "$2" <<'PY'
import csv, sys
a, b = ({r["id"]: [float(v) for k, v in r.items() if k != "id"] for r in csv.DictReader(open(p))} for p in sys.argv[1:])
worst = max(abs(x - y) for i in a for x, y in zip(a[i], b[i]))
same = sum(max(range(len(v)), key=v.__getitem__) == max(range(len(v)), key=b[i].__getitem__) for i, v in a.items())
print(f"{same} of {len(a)} predictions are the CPU's, probabilities differ by at most {worst:.2g}")
sys.exit(same < 0.98 * len(a))
PY
}

say "$("$tepal" --version), $(uname -sr), $(nproc) processors"
"$tepal" devices 2>&1 | tee -a "$report"
step "draw flowers" "$tepal" draw --out "$folder/flowers" --species 4 --size 96 --train 64 --val 16 --test 16
small=(--model efficientnet-b0 --weights none --image-size 96 --batch 8 --device "$device")
step "doctor, float32" "$tepal" doctor efficientnet-b0 --image-size 96 --device "$device"
tail -2 "$folder/log" | tee -a "$report"
data=(--train "$folder/flowers/train/*.tfrec" --val "$folder/flowers/val/*.tfrec")
step "train the head, two epochs" "$tepal" train "${data[@]}" "${small[@]}" --run "$folder/head" --epochs 2
# The last layers only: compiling the step of all layers may take minutes.
step "train the last layers, bfloat16" "$tepal" train "${data[@]}" "${small[@]}" --run "$folder/last-layers" --epochs 0 \
  --fine-tune-epochs 2 --batch-norm batch --precision bf16 --fine-tune-learning-rate 1e-3
grep -h 'images/s' "$folder/log" | tail -1 | tee -a "$report"

# A run that is interrupted, and goes on. SIGTERM: what a script starts in the background does not hear SIGINT.
"$tepal" train "${data[@]}" "${small[@]}" --run "$folder/stopped" --early-stopping 0 --epochs 1000 >"$folder/log" 2>&1 &
process=$!
for _ in $(seq 60); do
  [ -s "$folder/stopped/history.csv" ] && break
  sleep 0.5
done
kill -TERM $process
wait $process
code=$?
if [ $code = 6 ]; then say "ok     stop (exit 6: resumable)"; else say "FAILED stop (exit $code)"; failed=1; fi
"$tepal" train --resume "$folder/stopped" --device "$device" >"$folder/log" 2>&1 &
process=$!
sleep 8
kill -TERM $process 2>/dev/null
wait $process
code=$?
if [ $code = 6 ]; then say "ok     resume, and stop again"; else say "FAILED resume (exit $code)"; failed=1; fi

test_data=(--data "$folder/flowers/test/*.tfrec" --probabilities)
step "predict" "$tepal" predict "$folder/head" "${test_data[@]}" --out "$folder/device.csv" --device "$device"
step "predict on the CPU" "$tepal" predict "$folder/head" "${test_data[@]}" --out "$folder/cpu.csv" --device cpu
step "the same answers" bash -c "$(declare -f agreement); agreement \"\$@\"" -- "$folder/device.csv" "$folder/cpu.csv"
tail -1 "$folder/log" | tee -a "$report"

echo
echo "Please send back what follows (${SECONDS} s in all):"
cat "$report"
exit $failed
