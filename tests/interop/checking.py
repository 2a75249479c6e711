"""What the checks share: a line for each check, calling tepal, quiet TensorFlow."""
import os
import subprocess
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

failures = 0


def check(name, good, detail=""):
    global failures
    good = bool(good)
    failures += not good
    detail = str(detail)
    print(("ok      " if good else "FAILED  ") + name + (f" ({detail})" if detail and not good else ""), flush=True)


def close(name, ours, theirs, tolerance):
    """Largest difference of two arrays."""
    import numpy as np

    same = ours.shape == theirs.shape
    worst = float(np.max(np.abs(ours - theirs))) if same and ours.size else float("nan")
    check(f"{name}: within {tolerance:g}", same and worst <= tolerance, f"{ours.shape} {theirs.shape} {worst:g}")


def call(*words, status=0):
    """Runs a program; anything but the wanted exit code ends the check. Returns its standard output."""
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True)
    if done.returncode != status:
        print(f"FAILED  {' '.join(map(str, words))} (exit code {done.returncode}: {done.stderr[-1500:]})")
        sys.exit(1)
    return done.stdout


def end():
    sys.exit(1 if failures else 0)
