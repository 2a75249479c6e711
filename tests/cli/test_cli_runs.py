"""Proves what happens to a run: it can be stopped at any time and goes on to the same bytes, full and read-only disks
end it with exit code 5 and what was there intact, existing runs are not overwritten, resuming says what it did. Cases
B24 and B38 of the public fault reports; that the bytes are equal is compared with an uninterrupted run."""
import filecmp
import os
import re
import resource
import shutil
import signal
import subprocess
import time
from pathlib import Path

from cli_testing import DATA, DEVICE, DONE, OUTPUT, STOPPED, USAGE, CliTest, main, one_run

LONG = ["--fine-tune-epochs", 3, "--fine-tune-layers", 60, "--early-stopping", 0, "--image-size", 96]


def history(run):
    """history.csv without the columns that hold times."""
    lines = Path(run, "history.csv").read_text(encoding="utf-8").splitlines()
    head = lines[0].split(",")
    timed = [head.index("seconds"), head.index("images_per_s")]
    return [[f for i, f in enumerate(line.split(",")) if i not in timed] for line in lines]


def limit_files(size):
    def limits():
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    return limits


@one_run
class Runs(CliTest):
    def same(self, one, other):
        self.assertEqual(history(one), history(other))
        for name in ("best.safetensors", "best.h5"):
            self.assertTrue(filecmp.cmp(f"{one}/{name}", f"{other}/{name}", shallow=False), name)

    def start(self, *words, until=b"steps an epoch"):
        """Starts tepal and waits for a line, or for its end."""
        process = subprocess.Popen([self.program, *map(str, words)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                   env=self.environment)
        for line in process.stderr:
            if until in line or b"nothing is left" in line:
                break
        return process

    def test_what_a_run_holds(self):
        names = {n for n in os.listdir("run") if "tfevents" not in n}
        self.assertEqual(names, {"recipe.ini", "log.txt", "history.csv", "last.safetensors", "best.safetensors",
                                 "best.h5"})
        self.assertEqual(len(history("run")), 3)

    def test_threads(self):
        for threads in (1, 2, 3):
            self.good(*self.train_words("--quiet", "--threads", threads, run=f"t{threads}", epochs=2))
            self.same("run", f"t{threads}")

    def test_signals(self):
        """Stopped again and again, at whatever moment, the run ends in the bytes of one that never was."""
        self.good(*self.train_words(*LONG, "--quiet", run="whole", epochs=2))
        words = self.train_words(*LONG, run="cut", epochs=2)
        stops = 0
        for number in [signal.SIGINT, signal.SIGTERM, signal.SIGHUP] * 4:
            process = self.start(*words)
            time.sleep(0.02 * (stops % 5))
            process.send_signal(number)
            err = process.communicate(timeout=60)[1].decode()
            words = ["train", "--resume", "cut"]
            if process.returncode == DONE:
                break
            self.assertEqual(process.returncode, STOPPED, err)
            self.assertIn("tepal train: ", err)
            self.assertIn("--resume cut", err)
            self.assertNotIn("error", err)
            self.no_rubbish()
            stops += 1
        self.assertGreater(stops, 1)
        self.good("train", "--resume", "cut", "--quiet")
        self.same("whole", "cut")

    def test_killed(self):
        """SIGKILL loses no more than what came after the last checkpoint; what is left is whole."""
        words = self.train_words(*LONG, run="cut", epochs=2)
        process = self.start(*words, until=b"Epoch 1/")
        process.kill()
        process.communicate()
        self.good("train", "--resume", "cut", "--quiet")
        self.good(*self.train_words(*LONG, "--quiet", run="whole", epochs=2))
        self.same("whole", "cut")

    def test_resume_of_what_is_no_run(self):
        os.mkdir("bare")
        for name, piece in (("nothing", "no run"), ("bare", "no run"), ("flowers", "no run"), ("run/log.txt", "no run")):
            self.bad(DATA, [name, piece], "train", "--resume", name)
        os.remove("run/last.safetensors")
        self.bad(DATA, ["run/last.safetensors", "No such file"], "train", "--resume", "run")
        Path("run/last.safetensors").write_bytes(b"")
        self.bad(DATA, ["run/last.safetensors"], "train", "--resume", "run")

    def test_resume_with_other_words(self):
        before = Path("run/recipe.ini").read_text(encoding="utf-8")
        for word in ("--epochs=5", "--run=x", "--train=x", "--no-flip", "x.ini"):
            self.bad(USAGE, ["--resume", word], "train", "--resume", "run", word)
        self.assertEqual(Path("run/recipe.ini").read_text(encoding="utf-8"), before)

    def test_finished(self):
        """B24: nothing is done again, the weights stay, exit code 0 and a note."""
        before = Path("run/best.safetensors").read_bytes()
        answer = self.good("train", "--resume", "run")
        self.assertIn("nothing is left to do", answer.err)
        self.assertEqual(Path("run/best.safetensors").read_bytes(), before)
        self.assertEqual(len(history("run")), 3)

    def test_existing_run(self):
        before = Path("run/best.safetensors").read_bytes()
        self.bad(USAGE, ["run", "--resume run", "--overwrite"], *self.train_words(run="run"))
        self.assertEqual(Path("run/best.safetensors").read_bytes(), before)
        Path("run/notes.txt").write_text("mine")
        self.good(*self.train_words("--overwrite", "--quiet", run="run"))
        self.assertEqual(len(history("run")), 2)
        self.assertEqual(Path("run/notes.txt").read_text(), "mine")
        self.assertEqual(len([n for n in os.listdir("run") if "tfevents" in n]), 1)
        self.assertEqual(Path("run/log.txt").read_text().count("phase 1"), 1)

    def test_failed_start_keeps_what_was_there(self):
        os.mkdir("new")
        Path("new/notes.txt").write_text("mine")
        self.bad(USAGE, "--batch", *self.train_words("--batch", 0))
        self.assertEqual(os.listdir("new"), ["notes.txt"])

    def test_folders_that_cannot_be(self):
        """B38: found before the first epoch."""
        Path("file").touch()
        for run in ("file", "file/run", "/proc/run", "/dev/null/run"):
            self.bad(OUTPUT, run.split("/")[0] or run, *self.train_words(run=run))
        self.good(*self.train_words("--quiet", run="a/b/c"))

    def test_dry_run(self):
        answer = self.good(*self.train_words("--dry-run"))
        self.assertRegex(answer.err, r"memory|resident|MB")
        self.no_run()

    def test_memory(self):
        """A cap that cannot be met ends before the first step and says what is needed; one that can changes no byte."""
        full = ["--batch-norm", "batch", "--epochs", 0, "--fine-tune-epochs", 1, "--fine-tune-layers", "all", "--quiet"]
        self.bad(DEVICE, ["memory", "limit"], *self.train_words(*full, "--memory", "20M", run="small"))
        self.bad(USAGE, "memory", *self.train_words(*full, "--memory", "much", run="small"))
        self.good(*self.train_words(*full, run="any"))
        self.good(*self.train_words(*full, "--memory", "900M", run="less"))
        self.same("any", "less")

    def test_plan(self):
        plan = ("summary", "efficientnet-b0", "--plan", "--batch", 4, "--fine-tune-layers", "all", "--batch-norm", "batch")
        kept = [float(re.search(r"values kept .* ([0-9.]+) MB", self.good(*plan, *more).out).group(1))
                for more in ((), ("--memory", "190M"))]
        self.assertLess(kept[1], 0.9 * kept[0])
        self.bad(DEVICE, "limit", *plan, "--memory", "50M")
        self.bad(USAGE, "--plan", "summary", "efficientnet-b0", "--batch", 4)

    def test_recipe_of_the_examples(self):
        recipe = Path(__file__).resolve().parents[2] / "examples/all_layers.ini"
        words = self.train_words("--dry-run", "--warmup-steps", 2, "--epochs", 0)
        answer = self.good("train", recipe, *words[1:])
        self.assertRegex(answer.err, r"phase 2, fine-tuning: 149 trainable arrays, rate cosine from 0.0003 to 0")
        self.no_run()

    def test_full_disk(self):
        """B38: a checkpoint beyond the file-size limit: path and reason, the previous one intact, no part of it."""
        self.bad(OUTPUT, ["new/last.safetensors", "File too large"], *self.train_words(), limits=limit_files(1 << 20))
        self.no_rubbish()
        self.no_run()
        process = self.start(*self.train_words(*LONG, run="kept", epochs=2))
        process.terminate()
        process.communicate()
        self.assertEqual(process.returncode, STOPPED)
        before = Path("kept/last.safetensors").read_bytes()
        self.bad(OUTPUT, ["File too large"], "train", "--resume", "kept", limits=limit_files(1 << 20))
        self.assertEqual(Path("kept/last.safetensors").read_bytes(), before)
        self.no_rubbish()
        self.good("train", "--resume", "kept", "--quiet")

    def test_answers_on_a_full_disk(self):
        words = ["predict", "run", "--data", "flowers/test", "--out"]
        self.bad(OUTPUT, ["/dev/full", "No space left"], *words, "/dev/full")
        for out, piece in (("nowhere/s.csv", "No such file"), ("run", "folder"), ("flowers/labels.txt/s.csv", "directory")):
            answer = self.bad(OUTPUT, [out, piece], *words, out)
            self.assertNotIn("predict 6/6", answer.err)  # found before the work
        Path("s.csv").write_text("old")
        self.bad(OUTPUT, ["s.csv", "File too large"], *words, "s.csv", limits=limit_files(40))
        self.assertEqual(Path("s.csv").read_text(), "old")
        self.no_rubbish()

    def test_other_outputs_on_a_full_disk(self):
        self.bad(OUTPUT, ["File too large"], "draw", "--out", "more", "--species", 2, "--size", 64,
                 limits=limit_files(2000))
        self.assertFalse(os.path.exists("more"))
        os.makedirs("p/a")
        os.makedirs("p/b")
        photo = (Path(__file__).parent.parent / "fixtures/B08_whole.jpg").read_bytes()
        for i in range(10):
            Path(f"p/a/{i}.jpg").write_bytes(photo)
            Path(f"p/b/{i}.jpg").write_bytes(photo)
        self.bad(OUTPUT, ["File too large"], "pack", "p", "--out", "packed", limits=limit_files(2000))
        self.assertFalse(os.path.exists("packed"))
        self.bad(OUTPUT, ["/dev/full"], "inspect", "flowers/train", "--json", "/dev/full")

    def test_closed_and_full_streams(self):
        """No descriptor of a file of ours ever takes the place of a closed standard one."""
        predict = ["predict", "run", "--data", "flowers/test", "--out", "-"]
        with open("/dev/full", "wb") as full:
            for words in (predict, ["inspect", "flowers/train"], ["summary", "efficientnet-b0"], ["--help"],
                          ["weights", "list"]):
                self.bad(OUTPUT, "No space left", *words, stdout=full)

        def close_all():
            for fd in (0, 1, 2):
                os.close(fd)
        answer = self.call(*self.train_words(), limits=close_all)
        self.assertEqual((answer.code, answer.out, answer.err), (DONE, "", ""))
        self.good("predict", "new", "--data", "flowers/test", "--out", "s.csv")
        self.assertEqual(self.call(*predict, limits=close_all).code, OUTPUT)
        self.same_start("new", "run")

    def same_start(self, one, other):
        self.assertEqual(history(one)[1], history(other)[1])

    def test_standard_output(self):
        """The CSV alone goes to standard output, and the name of standard output is not renamed over."""
        by_name = self.good("predict", "run", "--data", "flowers/test", "--out", "s.csv")
        self.assertEqual(by_name.out, "")
        want = Path("s.csv").read_text(encoding="utf-8")
        self.assertEqual(self.good("predict", "run", "--data", "flowers/test", "--out", "-").out, want)
        os.symlink("/proc/self/fd/1", "stdout")
        for name in ("-", "stdout"):
            with open("o.csv", "w+b") as file:
                self.good("predict", "run", "--data", "flowers/test", "--out", name, stdout=file)
            self.assertEqual(Path("o.csv").read_text(encoding="utf-8"), want)
        self.assertTrue(os.path.islink("stdout"))

    def test_reader_that_leaves(self):
        process = subprocess.Popen([self.program, "summary", "efficientnet-b0"], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env=self.environment)
        process.stdout.close()
        err = process.stderr.read()
        self.assertEqual(process.wait(60), OUTPUT)
        process.stderr.close()
        self.assertEqual(err, b"")


if __name__ == "__main__":
    main()
