#!/usr/bin/env python3
"""Runs the benchmarks, prints their JSON lines, then a table; with a Python that has the peers, those beside it.

    run.py BUILD [PEERS_PYTHON]     DATA=DIR (train/*.tfrec) in the environment: real data instead of drawn flowers

What each line measures is said in bench/end_to_end.c and bench/peers/*.py. Everything runs one after the other on the
same machine, so that the ratios hold where the figures themselves depend on the machine.
"""
import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
PEERS = [("keras_frozen.py", "plain"), ("keras_frozen.py", "xla"), ("torch_frozen.py", "plain"), ("torch_frozen.py", "compile")]


def lines_of(command):
    """JSON lines of a program, printed as they are; a program that fails is said and has none."""
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    for line in found:
        print(json.dumps(line), flush=True)
    if done.returncode != 0:
        print(f"bench: {' '.join(map(str, command))} ended with {done.returncode}", file=sys.stderr)
    return found, done.returncode


def main():
    build, peers = Path(sys.argv[1]), sys.argv[2:3]
    data = [os.environ["DATA"]] if os.environ.get("DATA") else []
    found, code = lines_of([build / "bench/bench_end_to_end", *data])
    for script, how in PEERS if peers else []:
        found += lines_of([peers[0], HERE / "peers" / script, how, *(data if "keras" in script else [])])[0]
    ours = next((line["images_per_s"] for line in found if line["name"] == "frozen_train_b0_192"), None)
    print(f"\n{'measured':36}{'value':>10}  {'unit':12}{'tepal is':>10}")
    for line in found:
        unit = next(u for u in ("images_per_s", "mb", "seconds") if u in line)
        peer = ours is not None and line["name"].startswith(("keras", "torch"))
        times = f"{ours / line[unit]:9.1f}x" if peer else ""
        print(f"{line['name']:36}{line[unit]:10g}  {unit:12}{times:>10}")
    if not peers:
        print("(make bench-peers installs TensorFlow and PyTorch and measures them beside it)")
    return code


if __name__ == "__main__":
    sys.exit(main())
