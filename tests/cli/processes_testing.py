"""What tests of several processes share: starting them with mpirun, comparing runs, watching them end. Only the standard
library is used."""
import csv
import json
import math
import os
import signal
import socket
import struct
import subprocess
import time
from pathlib import Path

from cli_testing import DONE, STOPPED, CliTest

MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "PRTE_ALLOW_RUN_AS_ROOT": "1",
       "TEPAL_PROCESS_TIMEOUT": "5"}
PATIENCE = 60  # all have to be gone by then: what docs/GUIDE.md promises
TOLERANCE = 1e-5
SMALL = ["--model", "efficientnet-lite0", "--image-size", 48, "--threads", 1]


def tensors(path):
    """The f32 tensors of a safetensors file."""
    data = Path(path).read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    found = {}
    for name, about in json.loads(data[8:8 + size]).items():
        if name != "__metadata__" and about["dtype"] == "F32":
            first, end = (8 + size + offset for offset in about["data_offsets"])
            found[name] = struct.unpack("<%df" % ((end - first) // 4), data[first:end])
    return found


def figures(run):
    with open(f"{run}/history.csv", encoding="utf-8") as file:
        return [{k: float(v) for k, v in row.items() if v and k not in ("phase", "seconds", "images_per_s")}
                for row in csv.DictReader(file)]


def children(pid):
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(encoding="utf-8").rsplit(")", 1)
        except OSError:
            continue
        if int(fields[1].split()[1]) == pid and "tepal" in fields[0]:
            found.append(int(stat.parent.name))
    return sorted(found)


class ProcessTest(CliTest):
    """small: what makes a training of these tests quick; device: the words that choose it."""
    small, device = SMALL, []

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.alone = dict(cls.environment)
        cls.environment.update(MPI)

    def command(self, count, *words, before=("mpirun",), program=None):
        return [*before, "-n", str(count), "--oversubscribe", *(program or [self.program]), *map(str, words)]

    def mpirun(self, count, *words, before=("mpirun",), program=None, timeout=120):
        """Ends with mpirun's exit code, all of its output, and nothing left running."""
        done = subprocess.run(self.command(count, *words, before=before, program=program), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout, env=self.environment,
                              check=False)
        return done.returncode, done.stdout.decode("utf-8", "replace")

    def trains(self, count, *words, **options):
        code, out = self.mpirun(count, *words, **options)
        self.assertEqual(code, DONE, out)
        return out

    def fails(self, code, piece, count, *words, **options):
        """One of them tells why, and only one."""
        got, out = self.mpirun(count, *words, **options)
        self.assertEqual(got, code, out)
        self.assertIn(piece, out)
        self.assertEqual(out.count("error: "), 1, out)

    def same(self, one, other, tolerance=TOLERANCE):
        for name in ("last.safetensors", "best.safetensors"):
            a, b = tensors(f"{one}/{name}"), tensors(f"{other}/{name}")
            self.assertEqual(a.keys(), b.keys())
            for key in a:
                most = max((abs(x - y) for x, y in zip(a[key], b[key])), default=0)
                self.assertLess(most, tolerance, f"{name}: {key}")
        for x, y in zip(figures(one), figures(other), strict=True):
            self.assertEqual(x.keys(), y.keys())
            for key in x:
                self.assertTrue(math.isclose(x[key], y[key], rel_tol=1e-5, abs_tol=1e-5), (key, x, y))

    def start(self, count, *words, before=("mpirun",)):
        return subprocess.Popen(self.command(count, *words, before=before), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=self.environment)

    def apart(self, count, *words, environments=None, before=None, **environment):
        """Starts so many processes, each by itself, as hosts of a slice are."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            address = "127.0.0.1:%d" % probe.getsockname()[1]
        shared = {"TEPAL_PROCESSES": str(count), "TEPAL_ADDRESS": address, "TEPAL_SECRET": "0123456789abcdef",
                  "TEPAL_PROCESS_TIMEOUT": "30", **environment}
        return [subprocess.Popen([*(before(rank) if before else []), self.program, *map(str, words)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, text=True,
                                 env={**self.alone, "TEPAL_PROCESS": str(rank), **shared,
                                      **(environments[rank] if environments else {})})
                for rank in range(count)]

    def all_end(self, processes, timeout=PATIENCE):
        """Exit codes and outputs, by rank."""
        out = [process.communicate(timeout=timeout)[0] for process in processes]
        return [process.returncode for process in processes], out

    def begin(self, count, run, *more, before=("mpirun",)):
        """A long training in its first epochs."""
        words = self.train_words(*self.small, "--quiet", "--early-stopping", 0, *self.device, *more, run=run, epochs=5000)
        process = self.start(count, *words, before=before)
        end = time.monotonic() + PATIENCE
        while not os.path.exists(f"{run}/best.safetensors") and time.monotonic() < end:
            time.sleep(0.05)
        return process

    def ends(self, process, pids):
        """Exit code and output; fails if anyone is left after the time that is promised."""
        out = process.communicate(timeout=PATIENCE)[0].decode("utf-8", "replace")
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and any(os.path.exists(f"/proc/{pid}/exe") for pid in pids):
            time.sleep(0.05)
        self.assertFalse([pid for pid in pids if os.path.exists(f"/proc/{pid}/exe")], out)
        return process.returncode, out

    def one_is_killed(self, count):
        """mpirun sees it and ends the others; two go on."""
        process = self.begin(count, "new")
        pids = children(process.pid)
        self.assertEqual(len(pids), count)
        os.kill(pids[1], signal.SIGKILL)
        code, out = self.ends(process, pids)
        self.assertNotIn(code, (DONE, STOPPED), out)
        self.assertIn("Killed", out)  # mpirun's own words
        self.goes_on(2)

    def goes_on(self, count):
        """The checkpoint is whole: so many processes take it up, and stop when asked to."""
        self.no_rubbish("new")
        epochs = len(figures("new"))
        process = self.start(count, "train", "--resume", "new", "--quiet", *self.device)
        end = time.monotonic() + PATIENCE
        while len(figures("new")) < epochs + 2 and time.monotonic() < end and process.poll() is None:
            time.sleep(0.05)
        pids = children(process.pid)
        for pid in pids[:1]:
            os.kill(pid, signal.SIGINT)  # any one of them
        code, out = self.ends(process, pids)
        self.assertEqual(code, STOPPED, out)
        self.assertGreaterEqual(len(figures("new")), epochs + 2)
