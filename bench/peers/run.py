#!/usr/bin/env python3
"""Measures tepal and its peers one after the other on the same processors and prints how many times as fast tepal is.

    run.py BUILD PEERS_PYTHON [NAME...]       NAME: only measurements whose name contains one of them; DATA=DIR as in ../run.py

JSON lines first ({"name", "who", "images_per_s"}), then a table: images per second, and below them tepal's over the peer's.
Each peer is a process that measures its share of the list; a peer that has no such thing has no figure.
"""
import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
import run as ours

NAMES = [
    "infer_b0_192",
    "frozen_train_b0_192",
    "finetune_b0_192",
    "full_train_frozen_bn_b0_192",
    "full_train_b0_192",
    "infer_resnet50_192",
    "full_train_resnet50_192",
    "infer_densenet121_192",
    "infer_b2_192",
    "input_192",
]
KERAS = [name for name in NAMES if name != "infer_b2_192"]
TORCH = [name for name in NAMES if name not in ("finetune_b0_192", "input_192")]
INFERENCE = [name for name in NAMES if name.startswith("infer_")]
PEERS = [
    ("keras fit", ["keras_peer.py", "fit"], KERAS),
    ("keras xla", ["keras_peer.py", "xla"], ["frozen_train_b0_192", "full_train_b0_192", "infer_b0_192"]),
    ("torch eager", ["torch_peer.py", "eager"], TORCH),
    ("torch compile", ["torch_peer.py", "compile"], TORCH),
    ("onnxruntime", ["engine_peer.py", "onnxruntime"], INFERENCE),
    ("openvino", ["engine_peer.py", "openvino"], INFERENCE),
]


def lines(command):
    """The JSON lines of a program, as they come."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as child:
        for line in child.stdout:
            if line.startswith("{"):
                yield json.loads(line)


def table(found, names):
    columns = ["tepal"] + [who for who, _, _ in PEERS]
    print(f"\n{'images per second; tepal is ... as fast':34}" + "".join(f"{who:>15}" for who in columns))
    for name in names:
        rates = [found.get((name, who)) for who in columns]
        if not any(rates):
            continue
        print(f"{name:34}" + "".join(f"{rate:15.1f}" if rate else f"{'':15}" for rate in rates))
        times = [rates[0] / rate if rates[0] and rate else None for rate in rates[1:]]
        print(f"{'':49}" + "".join(f"{t:14.2f}x" if t else f"{'':15}" for t in times))


def main():
    build, python, wanted = sys.argv[1], sys.argv[2], sys.argv[3:]
    names = [name for name in NAMES if not wanted or any(part in name for part in wanted)]
    found = {}
    bench = ours.Bench(build, names)
    bench.tell = lambda name, line: found.update({(name, "tepal"): line.get("images_per_s")})
    with ours.data_folder(build) as data:
        os.environ["DATA"] = data
        bench.from_files(data)
        bench.steps()
        for key, value in found.items():
            if key[0] in names:
                print(json.dumps({"name": key[0], "who": key[1], "images_per_s": value}), flush=True)
        for who, command, can in PEERS:
            wanted = [name for name in names if name in can]
            for line in lines([python, HERE / command[0], command[1], *wanted]) if wanted else ():
                found[line["name"], who] = line["images_per_s"]
                print(json.dumps(line), flush=True)
    table(found, names)
    return 1 if bench.failed else 0


if __name__ == "__main__":
    sys.exit(main())
