"""Proves training by processes that were started apart, without MPI (TEPAL_PROCESSES): the weights of one process, on the
CPU and with devices as hosts of a TPU slice (tests/backend/pjrt/slice_plugin.c, which finds the others by libtpu's own
variables); one that is killed ends all, another number goes on, a wait for the others can be stopped, and what is wrong with
place or secret is told. What is expected is what one process does, measured here too. No real slice is proved by it."""
import filecmp
import os
import shutil
import signal
import sys
import time
from pathlib import Path

from cli_testing import DATA, DEVICE, DONE, OUTPUT, STOPPED, USAGE, main
from processes_testing import PATIENCE, SMALL, ProcessTest

PLUGINS = Path(os.environ.get("TEPAL_TEST_PJRT", Path(__file__).resolve().parents[2] / ".venv-pjrt"))
FOUND = sorted(PLUGINS.glob("lib/python3*/site-packages/fastatomstruct_xla_cpu/libpjrt_cpu.so"))
LONG = 300  # seconds: compiling takes long on a busy machine
SLICE = os.path.abspath(sys.argv.pop(2))


class Apart(ProcessTest):
    def train(self, count, run, batch, *more, **options):
        words = self.train_words(*SMALL, "--quiet", "--batch", batch, *more, run=run, epochs=2)
        codes, out = self.all_end(self.apart(count, *words, **options), LONG)
        self.assertEqual(codes, [DONE] * count, out)

    def test_weights_of_one_process(self):
        more = ["--fine-tune-epochs", 1]
        self.good(*self.train_words(*SMALL, *more, "--quiet", "--batch", 6, run="one", epochs=2), environment=self.alone)
        self.train(3, "three", 2, *more)
        self.same("one", "three")

    def test_one_is_killed(self):
        words = self.train_words(*SMALL, "--quiet", "--early-stopping", 0, run="new", epochs=5000)
        processes = self.apart(3, *words)
        end = time.monotonic() + PATIENCE
        while not os.path.exists("new/best.safetensors") and time.monotonic() < end:
            time.sleep(0.05)
        processes[1].kill()
        codes, out = self.all_end(processes)
        self.assertEqual(codes, [DEVICE, -signal.SIGKILL, DEVICE], out)
        for rank in (0, 2):
            self.assertRegex(out[rank], "error: process 1 of 3 .* has ended without a word.*--resume")
        self.no_rubbish("new")
        codes, out = self.all_end(self.apart(2, "train", "--resume", "new", "--quiet", TEPAL_PROCESS_TIMEOUT="soon"))
        self.assertEqual(codes, [USAGE] * 2, out)
        process = self.apart(2, "train", "--resume", "new", "--quiet")
        time.sleep(1)
        process[1].send_signal(signal.SIGINT)
        codes, out = self.all_end(process)
        self.assertEqual(len(set(codes)), 1, out)

    def test_stopped_while_waiting(self):
        for rank, said in (0, "waiting for 1 of 2 processes at "), (1, "waiting for process 0 at "):
            words = self.train_words(*SMALL, run="new")
            process = self.apart(1, *words, TEPAL_PROCESSES="2", TEPAL_PROCESS=str(rank))[0]
            line = ""
            while said not in line:
                line = process.stdout.readline()
                self.assertTrue(line, said)
            process.send_signal(signal.SIGINT)
            codes, out = self.all_end([process])
            self.assertEqual(codes, [STOPPED], out)
            self.assertIn("stopped while waiting for the other processes", out[0])
            self.no_run()

    def test_failures(self):
        codes, out = self.all_end(self.apart(2, *self.train_words(*SMALL, train="nowhere/*.tfrec")))
        self.assertEqual(codes, [DATA] * 2, out)
        self.assertEqual("".join(out).count("error: "), 1 + "".join(out).count("error: \n"), out)
        Path("file").touch()
        codes, out = self.all_end(self.apart(2, *self.train_words(*SMALL, run="file/run")))
        self.assertEqual(codes, [OUTPUT] * 2, out)
        codes, out = self.all_end(self.apart(2, *self.train_words(*SMALL), TEPAL_SECRET="short"))
        self.assertEqual(codes, [USAGE] * 2, out)
        self.assertIn("TEPAL_SECRET_FILE", out[0])
        codes, out = self.all_end(self.apart(2, "predict", "new", "--data", "flowers/test"))
        self.assertEqual(codes, [USAGE] * 2, out)
        self.assertIn("TEPAL_PROCESSES", out[0])
        self.no_run()


class Hosts(ProcessTest):
    """Hosts of a slice; the plugin is one for TPUs by its name."""

    def setUp(self):
        super().setUp()
        if not FOUND:
            print(f"skipped: no PJRT plugin in {PLUGINS} (make test-pjrt gets it)")
            if "TEPAL_TEST_PJRT" in os.environ:
                self.fail("TEPAL_TEST_PJRT is set, but the plugin is not there")
            self.skipTest("no plugin")
        os.symlink(SLICE, "libtpu.so")
        os.mkdir("wires")
        self.more = {"TEPAL_SLICE_PLUGIN": str(FOUND[0]), "TEPAL_SLICE_FOLDER": os.path.abspath("wires"),
                     "TEPAL_SLICE_PATIENCE": "30"}

    def words(self, run, *more):
        words = self.train_words("--model", "mobilenet-v2", "--image-size", 32, "--threads", 1, "--quiet", "--device",
                                 "./libtpu.so", *more, run=run, epochs=2)
        words[words.index("--batch") + 1] = 1
        return words

    def slice(self, hosts, *words, **environment):
        names = ",".join(["localhost"] * hosts)
        return self.all_end(self.apart(hosts, *words, environments=[{"TPU_WORKER_ID": str(i)} for i in range(hosts)],
                                       **dict(self.more, TEPAL_PROCESSES="tpu", TPU_WORKER_HOSTNAMES=names,
                                              TEPAL_SLICE_TPU="2", **environment)), LONG)

    def test_bits_of_one_host(self):
        more = ["--fine-tune-epochs", 1]
        self.good(*self.words("one", *more), environment=dict(self.alone, **self.more, TEPAL_SLICE_TPU="4"), timeout=LONG)
        codes, out = self.slice(2, *self.words("two", *more), TPU_PROCESS_BOUNDS="as if it were two hosts")
        self.assertEqual(codes, [DONE] * 2, out)
        log = Path("two/log.txt").read_text(encoding="utf-8")
        self.assertIn("device tpu: cpu, PJRT 0.106, StableHLO 1.16.1; 4 replicas in 2 processes, batch 1 on each", log)
        self.same("one", "two")
        self.assertTrue(filecmp.cmp("one/best.h5", "two/best.h5", shallow=False))

    def test_devices_that_meet_in_a_store(self):
        """As GPUs do; with root's rights on hosts of two names, so that the store is not on the loopback only."""
        words = self.train_words("--model", "mobilenet-v2", "--image-size", 32, "--threads", 1, "--quiet", "--device", SLICE,
                                 "--replicas")
        self.good(*words, 4, "--run", "one", environment=dict(self.alone, **self.more), timeout=LONG)
        two = [*words, 2, "--run", "two", "--batch", 4]
        renamed = os.geteuid() == 0 and shutil.which("unshare")
        codes, out = self.all_end(self.apart(2, *two, TMPDIR=os.path.abspath("wires"), **self.more, before=lambda rank: [
            "unshare", "-u", "sh", "-c", f'hostname host{rank}; exec "$@"', "sh"] if renamed else []), LONG)
        self.assertEqual(codes, [DONE] * 2, out)
        self.same("one", "two")

    def test_one_machine(self):
        codes, out = self.slice(2, *self.words("new"))
        self.assertEqual(codes, [DEVICE] * 2, out)
        self.assertIn("one drives all of its TPU chips", out[0])
        self.no_run()


main()
