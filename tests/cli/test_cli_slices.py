"""Proves training by several processes with devices of their own (TPU slices, GPUs of several processes), with a plugin
that makes the devices of all processes one machine (tests/backend/pjrt/slice_plugin.c) before a plugin for CPUs: the
bits of one process with as many devices, also where some replica or process has no rows; one that is killed or frozen
ends all; another number goes on; all run the same program, whoever has it in a cache; what is wrong is told once.
What is expected is what one process with all the devices does, measured here too. No real slice is proved by it."""
import filecmp
import os
import signal
import sys
from pathlib import Path

from cli_testing import DEVICE, DONE, STOPPED, USAGE, main
from processes_testing import ProcessTest, children

PLUGINS = Path(os.environ.get("TEPAL_TEST_PJRT", Path(__file__).resolve().parents[2] / ".venv-pjrt"))
FOUND = sorted(PLUGINS.glob("lib/python3*/site-packages/fastatomstruct_xla_cpu/libpjrt_cpu.so"))
LONG = 300  # seconds: compiling takes long on a busy machine
SLICE = os.path.abspath(sys.argv.pop(2))


class Slices(ProcessTest):
    small = ["--model", "mobilenet-v2", "--image-size", 32, "--threads", 1]
    device = ["--device", SLICE, "--replicas", 2]

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        more = {"TEPAL_SLICE_PLUGIN": str(FOUND[0]), "TEPAL_PROCESS_TIMEOUT": "30", "TMPDIR": cls.box}
        cls.environment.update(more)
        cls.alone.update(more)

    def words(self, replicas, run, *more, batch=1, epochs=2):
        words = self.train_words(*self.small, "--quiet", *more, "--device", SLICE, "--replicas", replicas, run=run,
                                 epochs=epochs)
        words[words.index("--batch") + 1] = batch
        return words

    def one(self, replicas, *more, **options):
        self.good(*self.words(replicas, "one", *more, **options), environment=self.alone, timeout=LONG)

    def many(self, processes, replicas, run, *more, **options):
        out = self.trains(processes, *self.words(replicas, run, *more, **options), timeout=LONG)
        self.assertEqual(sorted(n for n in os.listdir(run) if "tfevents" not in n),
                         sorted(n for n in os.listdir("one") if "tfevents" not in n))
        log = Path(run, "log.txt").read_text(encoding="utf-8")
        self.assertIn(f"; {processes * replicas} replicas in {processes} processes, batch", log)
        self.same_bits("one", run)
        return out

    def same_bits(self, one, other):
        self.same(one, other)
        self.assertTrue(filecmp.cmp(f"{one}/best.h5", f"{other}/best.h5", shallow=False))

    # ---- equal to one ----

    def test_bits_of_one_process(self):
        """12 pictures in steps of 8 on 8 replicas: the last step has 4, so that of 4 processes two have none."""
        more = ["--fine-tune-epochs", 1, "--class-weights", "0:2"]
        self.one(8, *more)
        self.many(4, 2, "four", *more)

    def test_statistics(self):
        """Batch norm by the batch, all layers, over all replicas; two pictures are mixed in each."""
        more = ["--fine-tune-epochs", 1, "--fine-tune-layers", "all", "--batch-norm", "batch", "--sync-batch-norm",
                "--cutmix", 1, "--optimizer", "sgd"]
        self.one(4, *more, batch=2, epochs=0)
        self.many(2, 2, "two", *more, batch=2, epochs=0)

    def test_kept_features_and_steps_together(self):
        """Each process computes features of its own when it meets a picture, and all begin calls at the same steps."""
        more = ["--no-flip", "--rotate", 0, "--steps-per-execution", 2]
        self.one(4, *more, epochs=4)
        self.many(2, 2, "two", *more, epochs=4)

    # ---- ends, and going on ----

    def test_one_is_killed(self):
        self.one_is_killed(2)

    def test_one_is_frozen(self):
        self.environment = dict(self.environment, TEPAL_PROCESS_TIMEOUT="5", TEPAL_SLICE_PATIENCE="8")
        process = self.begin(2, "new")
        pids = children(process.pid)
        os.kill(pids[1], signal.SIGSTOP)
        code, out = self.ends(process, pids)
        self.assertEqual(code, DEVICE, out)
        self.assertRegex(out, "has not been heard of for 5 seconds|slice: node 1 has not come")

    def test_another_number_goes_on(self):
        """Stopped by two processes, gone on with by one that has all the devices: the bits of one that was not."""
        more = ["--early-stopping", 0]
        self.one(4, *more, epochs=20)
        words = self.words(2, "cut", *more, epochs=20)
        words.remove("--quiet")
        process = self.start(2, *words)
        pids = []
        for line in process.stdout:
            pids = pids or children(process.pid)
            if b"epoch 2:" in line:
                break
        os.kill(pids[1], signal.SIGINT)
        code, out = self.ends(process, pids)
        self.assertEqual(code, STOPPED, out)
        self.good("train", "--resume", "cut", "--quiet", "--device", SLICE, "--replicas", 4, environment=self.alone,
                  timeout=LONG)
        self.same_bits("one", "cut")

    # ---- caches ----

    def test_one_has_the_programs(self):
        """Process 1 has lost its cache: process 0 compiles again, too."""
        Path("each").write_text("#!/bin/sh\nTEPAL_CACHE=$PWD/cache$OMPI_COMM_WORLD_RANK exec \"$@\"\n", encoding="utf-8")
        os.chmod("each", 0o755)
        self.one(4)
        for run in ("first", "second"):
            code, out = self.mpirun(2, *self.words(2, run), program=[os.path.abspath("each"), self.program], timeout=LONG)
            self.assertEqual(code, DONE, out)
            self.same_bits("one", run)
            kept = {rank: sorted(os.listdir(f"cache{rank}/programs")) for rank in (0, 1)}
            for name in kept[1]:
                os.remove(f"cache1/programs/{name}")
        self.assertEqual(len(kept[0]), len(kept[1]))

    # ---- memory ----

    def test_one_has_too_little_memory(self):
        """All take a batch in the parts that process 1 needs; here none are few enough."""
        little = ["sh", "-c", '[ $OMPI_COMM_WORLD_RANK = 0 ] || export TEPAL_SLICE_MEMORY=20000000; exec "$@"', "sh",
                  self.program]
        words = self.words(2, "new", "--fine-tune-epochs", 1, "--fine-tune-layers", "all", batch=2, epochs=0)
        words.remove("--quiet")
        code, out = self.mpirun(2, *words, program=little, timeout=LONG)
        self.assertEqual(code, DEVICE, out)
        self.assertRegex(out, "process 1 of 2: a batch of 4, 2 on each .*in 2 parts of the batch instead")
        self.assertRegex(out, "error: .*out of memory.*process 1 of 2: a batch of 4")
        self.assertEqual(out.count("error: "), 1, out)
        self.no_run()

    # ---- what is wrong ----

    def test_failures_are_told_once(self):
        device = ["--device", str(FOUND[0]), "--replicas", 2]
        self.fails(DEVICE, "does not join processes", 2, *self.train_words(*self.small, *device))
        self.no_run()
        self.fails(DEVICE, "nowhere.so", 2, *self.train_words(*self.small, "--device", "./nowhere.so"))
        more = ["sh", "-c", 'exec "$@" --replicas $((1 + OMPI_COMM_WORLD_RANK))', "sh", self.program]
        code, out = self.mpirun(2, *self.train_words(*self.small, "--device", SLICE), program=more)
        self.assertEqual(code, DEVICE, out)
        self.assertRegex(out, "slice: node [01]|equally many")
        code, out = self.mpirun(2, "evaluate", "new", "--data", "flowers/val", *self.device)
        self.assertEqual(code, USAGE, out)
        self.assertIn("without mpirun", out)


if not FOUND:
    print(f"skipped: no PJRT plugin in {PLUGINS} (make test-pjrt gets it)")
    sys.exit("TEPAL_TEST_PJRT is set, but the plugin is not there" if "TEPAL_TEST_PJRT" in os.environ else 77)
main()
