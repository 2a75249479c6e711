"""What the peers' scripts share: names of measurements, threads, timing.

A name is that of bench/names.h: KIND_NETWORK_SIZE, for example full_train_resnet50_192.
"""
import json
import os
import statistics
import sys
import time

BATCH, CLASSES, SECONDS = 32, 104, 5.0
KINDS = ["infer", "frozen_train", "finetune", "full_train_frozen_bn", "full_train", "input"]


def threads():
    return len(os.sched_getaffinity(0))


def parse(name):
    """(kind, network, size); the network of input_192 is empty."""
    kind = max((k for k in KINDS if name.startswith(k + "_")), key=len)
    rest, _, size = name[len(kind) :].rpartition("_")
    return kind, rest.strip("_"), int(size)


def rate(step, images=BATCH, seconds=SECONDS):
    """Images per second: the median of steps after warming up, which is two steps and at least a second."""
    start, warm = time.perf_counter(), 0
    while warm < 2 or time.perf_counter() - start < 1:
        step()
        warm += 1
    taken, start = [], time.perf_counter()
    while len(taken) < 2 or time.perf_counter() - start < seconds:
        before = time.perf_counter()
        step()
        taken.append(time.perf_counter() - before)
    return images / statistics.median(taken)


def tell(who, name, images_per_s, **more):
    print(json.dumps({"name": name, "who": who, "images_per_s": round(images_per_s, 1)} | more), flush=True)


def each(names, measure, who):
    """measure(kind, network, size) -> images per second, or None where the peer has no such thing, or a dict of several ways
    of running, of which the best counts; a failure is told and does not stop the others."""
    failed = False
    for name in names:
        try:
            found = measure(*parse(name))
        except Exception as e:  # noqa: BLE001 - whatever a library throws
            failed = True
            print(f"{who}: {name}: {type(e).__name__}: {str(e)[:300]}", file=sys.stderr)
            continue
        if isinstance(found, dict):
            tell(who, name, max(found.values()), ways={way: round(rate, 1) for way, rate in found.items()})
        elif found is not None:
            tell(who, name, found)
    return 1 if failed else 0
