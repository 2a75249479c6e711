#!/usr/bin/env python3
"""Runs the benchmarks: JSON lines first, then the same in words.

    run.py BUILD [NAME...]       NAME: only measurements whose name contains one of them
    DATA=DIR in the environment: train/*.tfrec and val/*.tfrec; without it flowers are drawn

Each measurement is a process of its own (bench/step.c, end_to_end.c, input_rate.c say what each does), one after the other.
Speeds come with their share of the multiply-add peak, measured in the same process on the same threads, so that they can be
compared where the machine's clock moves.
"""
import contextlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

SECONDS = os.environ.get("BENCH_SECONDS", "5")
# What issue and documents ask for, and what it is called in words.
STEPS = {
    "infer_b0_192": "EfficientNet-B0, inference",
    "finetune_b0_192": "EfficientNet-B0, step of the last 20 layers",
    "full_train_frozen_bn_b0_192": "EfficientNet-B0, step of all layers, batch norm frozen",
    "full_train_b0_192": "EfficientNet-B0, step of all layers, batch statistics",
    "infer_resnet50_192": "ResNet50, inference",
    "full_train_resnet50_192": "ResNet50, step of all layers, batch statistics",
    "infer_densenet121_192": "DenseNet121, inference",
    "full_train_densenet121_192": "DenseNet121, step of all layers, batch statistics",
    "infer_b2_192": "EfficientNet-B2, inference",
    "infer_lite0_192": "EfficientNet-Lite0, inference",
    "infer_mobilenet-v2_192": "MobileNetV2, inference",
}
# The same with products of bfloat16, on processors that have them; shares are of float32's peak.
BF16 = {f"{name}_bf16": STEPS[name] + ", bfloat16" for name in (
    "infer_b0_192", "finetune_b0_192", "full_train_b0_192", "infer_resnet50_192", "full_train_resnet50_192")}
WORDS = STEPS | BF16 | {
    "infer_b0_192_avx2": "EfficientNet-B0, inference, AVX2 kernels",
    "frozen_train_b0_192": "EfficientNet-B0, training the head from TFRecords, flip and rotation",
    "input_192": "input alone: read, decode, resize, flip, rotate",
    "input_over_decode": "... its time over that of decoding alone",
    "two_threads_infer_b0_192": "two threads over one, inference",
    "two_threads_full_train_b0_192": "two threads over one, all layers",
    "first_step_s": "from start to the first step",
    "rss_frozen_mb": "memory, training the head",
    "rss_full_mb": "memory, training all layers by batch statistics",
}


class Bench:
    def __init__(self, build, wanted):
        self.build, self.wanted, self.found, self.failed = Path(build), wanted, {}, False

    def skips(self, *names):
        return bool(self.wanted) and not any(part in name for name in names for part in self.wanted)

    def lines(self, command, environment=None, cpus=None):
        """The JSON lines of a program; cpus: the only processors it may use."""
        prepare = (lambda: os.sched_setaffinity(0, cpus)) if cpus else None
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=os.environ | (environment or {}), preexec_fn=prepare)
        if done.returncode != 0:
            self.failed = True
            print(f"bench: {' '.join(map(str, command))} ended with {done.returncode}", file=sys.stderr)
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]

    def tell(self, name, line):
        """One result; of a speed the three fields that everything has."""
        if "images_per_s" in line:
            line = {"name": name, "images_per_s": line["images_per_s"], "peak_share": line["peak_share"]}
        self.found[name] = line
        print(json.dumps(line), flush=True)

    def step(self, name, seconds=SECONDS, **how):
        return next(iter(self.lines([self.build / "bench/bench_step", name, seconds], **how)), None)

    def steps(self):
        cpuinfo = Path("/proc/cpuinfo")
        has_bf16 = cpuinfo.exists() and "avx512_bf16" in cpuinfo.read_text(encoding="utf-8").split()
        for name in STEPS | (BF16 if has_bf16 else {}):
            if not self.skips(name) and (line := self.step(name)):
                self.tell(name, line)
        name = "infer_b0_192_avx2"
        if not self.skips(name) and (line := self.step("infer_b0_192", environment={"TEPAL_CPU": "avx2"})):
            self.tell(name, line)

    def threads(self):
        """Rounds of one and two threads alternate; the ratio of the medians."""
        cpus = sorted(os.sched_getaffinity(0))
        for measured in ("infer_b0_192", "full_train_b0_192") if len(cpus) > 1 else ():
            name = "two_threads_" + measured
            if self.skips(name):
                continue
            rates = {1: [], 2: []}
            for count in (1, 2, 1, 2, 1, 2):
                rates[count] += [line["images_per_s"] for line in [self.step(measured, "2", cpus=set(cpus[:count]))] if line]
            if rates[1] and rates[2]:
                self.tell(name, {"name": name, "times": round(sorted(rates[2])[len(rates[2]) // 2] / sorted(rates[1])[len(rates[1]) // 2], 2)})

    def from_files(self, data):
        if not self.skips("first_step_s", "frozen_train_b0_192", "rss_frozen_mb", "rss_full_mb"):
            for line in self.lines([self.build / "bench/bench_end_to_end", data]):
                self.tell(line["name"], line)
        if not self.skips("input_192", "input_over_decode"):
            for line in self.lines([self.build / "bench/bench_input", f"{data}/train/*.tfrec"]):
                self.tell("input_192", line)
                self.tell("input_over_decode", {"name": "input_over_decode", "times": line["over_decode"]})

    def words(self):
        print(f"\n{'measured, 192x192, batch 32':74}{'value':>9}  {'unit':12}{'of the peak':>11}")
        for name, line in self.found.items():
            unit = next(key for key in line if key not in ("name", "peak_share"))
            share = f"{line['peak_share']:11.2f}" if line.get("peak_share") is not None else ""
            print(f"{WORDS.get(name, name):74}{line[unit]:9g}  {unit:12}{share}")


@contextlib.contextmanager
def data_folder(build):
    """DATA, or flowers that are drawn and removed again."""
    if os.environ.get("DATA"):
        yield os.environ["DATA"]
        return
    with tempfile.TemporaryDirectory(prefix="tepal-bench-") as drawn:
        subprocess.run([Path(build) / "tepal", "draw", "--out", drawn, "--overwrite"], check=True, stdout=subprocess.DEVNULL)
        yield drawn


def main():
    bench = Bench(sys.argv[1], sys.argv[2:])
    with data_folder(sys.argv[1]) as data:
        bench.from_files(data)
        bench.steps()
        bench.threads()
    bench.words()
    return 1 if bench.failed else 0


if __name__ == "__main__":
    sys.exit(main())
