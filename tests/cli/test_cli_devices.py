"""Proves what a run on a device does, with 8 devices of a PJRT plugin for CPUs: training and prediction give what the
CPU's own kernels give with the same global batch, a stopped run goes on to the same bytes, a run may change devices,
compiled programs are kept and a damaged one is made anew. The numbers expected are the CPU's."""
import csv
import filecmp
import os
import signal
import subprocess
import sys
from pathlib import Path

from cli_testing import DONE, STOPPED, USAGE, CliTest, main

PLUGINS = Path(os.environ.get("TEPAL_TEST_PJRT", Path(__file__).resolve().parents[2] / ".venv-pjrt"))
FOUND = sorted(PLUGINS.glob("lib/python3*/site-packages/fastatomstruct_xla_cpu/libpjrt_cpu.so"))
SMALL = ["--model", "mobilenet-v2", "--image-size", 32]
LONG = 300  # seconds: compiling takes long on a busy machine


def history(run):
    with open(Path(run, "history.csv"), encoding="utf-8") as file:
        return [{k: float(v) for k, v in row.items() if v and k != "phase"} for row in csv.DictReader(file)]


def answers(path):
    with open(path, encoding="utf-8") as file:
        return [(row["id"], [float(v) for k, v in row.items() if k != "id"]) for row in csv.DictReader(file)]


class Devices(CliTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.device = ["--device", str(FOUND[0]), "--replicas", 8]
        cls.environment = dict(cls.environment, TEPAL_CACHE=os.path.join(cls.box, "cache"))

    def train(self, run, batch, *more, epochs=3, **options):
        words = self.train_words(*SMALL, *more, run=run, epochs=epochs)
        words[words.index("--batch") + 1] = batch
        return self.good(*words, timeout=LONG, **options)

    def close(self, one, other, tolerance=1e-4):
        for a, b in zip(history(one), history(other)):
            for key in ("loss", "val_loss"):
                self.assertLess(abs(a[key] - b[key]), tolerance * abs(a[key]), (key, a, b))
        self.assertEqual(len(history(one)), len(history(other)))

    def test_trains_and_predicts_as_the_cpu(self):
        """12 pictures in steps of 8: the last step has 4 for 8 replicas."""
        self.train("many", 1, *self.device)
        self.train("one", 8, "--device", "cpu")
        self.close("one", "many")
        log = Path("many", "log.txt").read_text(encoding="utf-8")
        self.assertIn("8 replicas, batch 1 on each, 8 in all", log)
        data = ["--data", "flowers/test/*.tfrec", "--probabilities"]
        self.good("predict", "many", *data, "--out", "many.csv", "--batch", 1, *self.device, timeout=LONG)
        self.good("predict", "many", *data, "--out", "one.csv", "--device", "cpu")
        many, one = answers("many.csv"), answers("one.csv")
        self.assertEqual([i for i, _ in many], [i for i, _ in one])
        self.assertLess(max(abs(x - y) for (_, a), (_, b) in zip(many, one) for x, y in zip(a, b)), 1e-5)

    def test_stops_and_goes_on(self):
        words = ["--rotate", 0, "--early-stopping", 0]
        self.train("whole", 1, *words, *self.device, epochs=40)
        line = self.train_words(*SMALL, *words, *self.device, run="cut", epochs=40)
        line[line.index("--batch") + 1] = 1
        process = subprocess.Popen([self.program, *map(str, line)], stderr=subprocess.PIPE, env=self.environment)
        for text in process.stderr:
            if b"epoch 2:" in text:
                break
        process.send_signal(signal.SIGINT)
        error = process.communicate(timeout=LONG)[1].decode()
        self.assertIn(process.returncode, (STOPPED, DONE), error)
        self.assertEqual(process.returncode, STOPPED, "the run was over before it could be stopped")
        self.good("train", "--resume", "cut", "--quiet", *self.device, timeout=LONG)
        self.assertTrue(filecmp.cmp("whole/best.safetensors", "cut/best.safetensors", shallow=False))

    def test_flips_and_turns_on_the_devices(self):
        """What the host does to float32 pictures, 8 devices do to bytes; what cannot move is refused, also on the CPU."""
        words = ["--image-size", 64]  # as the pictures are stored
        self.train("there", 1, *words, *self.device, "--augment-on", "device")
        self.train("here", 1, *words, *self.device)
        self.close("here", "there", 1e-3)
        log = Path("there", "log.txt").read_text(encoding="utf-8")
        self.assertIn("8 in all; pixels cross as 8 bits; flips and turns on the device", log)
        self.train("cpu", 8, *words, "--augment-on", "device", "--device", "cpu")  # the host is the device
        self.close("here", "cpu")
        for pieces, more in [(["mixup"], ["--mixup", 0.2]), (["contrast"], ["--contrast", 0.5]),
                             (["crop", "rotate"], ["--random-crop", 0.5]), (["0.125", "0.2"], ["--rotate", 0.2]),
                             (["wrap"], ["--rotate-fill", "wrap"])]:
            line = self.train_words(*SMALL, "--augment-on", "device", *more, run="none")
            self.bad(USAGE, ["leave augment_on at host", *pieces], *line)
        self.bad(USAGE, ['"both" is not known', "host or device"],
                 *self.train_words(*SMALL, "--augment-on", "both", run="none"))

    def test_programs_are_kept(self):
        folder = Path(self.environment["TEPAL_CACHE"], "programs")
        self.train("first", 1, *self.device, epochs=1)
        kept = {p: p.stat().st_ino for p in folder.iterdir()}
        self.assertGreater(len(kept), 1)
        self.train("again", 1, *self.device, epochs=1)
        self.assertEqual(kept, {p: p.stat().st_ino for p in folder.iterdir()})  # none was written again
        for path in kept:
            path.write_bytes(path.read_bytes()[:1000])
        self.train("damaged", 1, *self.device, epochs=1)
        self.close("first", "damaged")
        self.close("first", "again")

    def test_doctor(self):
        out = self.good("doctor", "mobilenet-v2", "--image-size", 32, *self.device, timeout=LONG).out
        self.assertEqual(out.count("agrees with the plain loops in all"), 2, out)


if not FOUND:
    print(f"skipped: no PJRT plugin in {PLUGINS} (make test-pjrt gets it)")
    sys.exit("TEPAL_TEST_PJRT is set, but the plugin is not there" if "TEPAL_TEST_PJRT" in os.environ else 77)
main()
