"""Runs every check of this folder and adds up what they say: a line "ok NAME" or "FAILED NAME (why)" for each check.

    run.py BUILD [NAME...]       BUILD: Meson's build folder; NAME: only these scripts (as check_shards)

Each check is a program of its own, so that one which dies is counted as failed and the others still run. Ends with 1
when a check failed, when a script ended badly, or when nothing was checked.
"""
import subprocess
import sys
import time
from pathlib import Path

# Script: what it is called with.
ARGUMENTS = {
    "weights": ["tests/model/weights_tool"],
    "check_shards": ["tepal"],
    "check_run": ["tepal"],
    "check_tensorboard": ["tepal"],
    "check_models": ["tests/interop/model_tool"],
    "check_timm": ["tests/interop/model_tool"],
}


def run(script, build):
    start = time.monotonic()
    peers = Path(__file__).parent.parent.parent / ".venv-peers/bin/python"  # of make bench-peers: has torch and timm
    python = str(peers) if script.stem == "check_timm" and peers.exists() else sys.executable
    arguments = [str(build / a) for a in ARGUMENTS[script.stem]]
    try:
        done = subprocess.run([python, str(script), *arguments], capture_output=True, text=True, timeout=900)
        output, code = done.stdout, done.returncode
        errors = done.stderr
    except subprocess.TimeoutExpired as late:
        output, code, errors = (late.stdout or b"").decode(), -1, "took more than 15 minutes"
    passed = failed = skipped = 0
    for line in output.splitlines():
        passed += line.startswith("ok ")
        failed += line.startswith("FAILED ")
        skipped += line.startswith("skipped ")
        if line.startswith(("ok ", "FAILED ", "skipped ")):
            print(f"{script.stem}: {line}")
    if failed == 0 and (code != 0 or passed + skipped == 0):
        failed = 1
        print(f"{script.stem}: FAILED  ended with {code} after {passed} checks")
        print(errors[-4000:])
    print(f"{script.stem}: {passed} passed, {failed} failed, {time.monotonic() - start:.0f} s", flush=True)
    return passed, failed


def main():
    build, only = Path(sys.argv[1]).resolve(), sys.argv[2:]
    folder = Path(__file__).parent
    scripts = [folder / f"{name}.py" for name in (only or ARGUMENTS)]
    strangers = {path.stem for path in folder.glob("check_*.py")} - ARGUMENTS.keys()
    if strangers:
        sys.exit(f"interoperability: {sorted(strangers)} are not in the table of {__file__}")
    total = [run(script, build) for script in scripts]
    passed, failed = (sum(t[i] for t in total) for i in (0, 1))
    print(f"interoperability: {passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
