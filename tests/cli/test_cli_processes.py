"""Proves training by several processes (mpirun -n N tepal train): the weights and figures of one process with the same
batch, also where rows do not divide and some process has none; the same bits each time; a killed, frozen or stopped
process ends all of them, the checkpoint is whole, and another number of processes goes on; failures are told once.
What is expected is what one process does, measured here too."""
import filecmp
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from cli_testing import DATA, DEVICE, DONE, FIXTURES, OUTPUT, STOPPED, USAGE, example, main, write
from processes_testing import MPI, PATIENCE, SMALL, ProcessTest, children


def here(name):
    """Running processes of that name that work in this folder."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(folder / "cwd") == os.getcwd() and (folder / "comm").read_text().strip() == name:
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def end_all(*namespaces):
    for name in namespaces:
        inside = subprocess.run(["ip", "netns", "pids", name], stdout=subprocess.PIPE, check=False).stdout
        for pid in inside.split():
            os.kill(int(pid), signal.SIGKILL)


class Processes(ProcessTest):
    # ---- equal to one ----

    def test_weights_of_one_process(self):
        """2 and 4 processes; batches of 8, then the last of 4, and of 6 for validation."""
        more = [*SMALL, "--fine-tune-epochs", 2, "--class-weights", "0:2", "--quiet", "--batch"]
        self.good(*self.train_words(*more, 8, run="one", epochs=2), environment=self.alone)
        for count in (2, 4):
            self.trains(count, *self.train_words(*more, 8 // count, run=f"n{count}", epochs=2))
            self.same("one", f"n{count}")
            self.assertIn(f"{count} processes of 1 thread", Path(f"n{count}/log.txt").read_text(encoding="utf-8"))
            self.assertEqual({n for n in os.listdir(f"n{count}") if "tfevents" not in n},
                             {n for n in os.listdir("one") if "tfevents" not in n})
        self.trains(4, *self.train_words(*more, 2, run="again", epochs=2))
        self.assertTrue(filecmp.cmp("n4/best.safetensors", "again/best.safetensors", shallow=False))

    def test_statistics_of_the_whole_batch(self):
        """Batch norm by the batch, all layers: mean and variance are those of all processes' rows."""
        more = ["--model", "efficientnet-b0", "--image-size", 64, "--threads", 1, "--optimizer", "sgd",
                "--fine-tune-epochs", 1, "--fine-tune-layers", "all", "--fine-tune-learning-rate", 1e-3, "--batch-norm",
                "batch", "--clip-norm", 1, "--quiet", "--batch"]
        self.good(*self.train_words(*more, 6, run="one", epochs=0), environment=self.alone)
        self.trains(2, *self.train_words(*more, 3, run="two", epochs=0))
        self.same("one", "two")

    def test_mixed_pictures(self):
        """The partner of a process's last picture is another process's first."""
        more = [*SMALL, "--mixup", 0.4, "--cutmix", 1, "--quiet", "--batch"]
        self.good(*self.train_words(*more, 6, run="one", epochs=2), environment=self.alone)
        self.trains(3, *self.train_words(*more, 2, run="three", epochs=2))
        self.same("one", "three")

    def test_kept_features(self):
        """Without augmentation each process keeps the features of what it has seen."""
        more = [*SMALL, "--no-flip", "--rotate", 0, "--quiet", "--batch"]
        self.good(*self.train_words(*more, 6, run="one", epochs=3), environment=self.alone)
        self.trains(3, *self.train_words(*more, 2, run="three", epochs=3))
        self.same("one", "three")

    def test_damaged_pictures(self):
        """max_bad counts those of all processes; all are listed once."""
        photo = (FIXTURES / "B08_whole.jpg").read_bytes()
        records = [example(image=photo[:200] if i in (2, 5, 9) else photo, **{"class": i % 2, "id": b"%d" % i})
                   for i in range(12)]
        os.makedirs("bad")
        write("bad/0.tfrec", *records)
        more = [*SMALL, "--quiet", "--batch"]
        words = {"train": "bad/0.tfrec", "val": None, "labels": None, "epochs": 2}
        self.good(*self.train_words(*more, 4, "--max-bad", 3, run="one", **words), environment=self.alone)
        self.trains(2, *self.train_words(*more, 2, "--max-bad", 3, run="two", **words))
        self.same("one", "two")
        listed = [sorted(Path(f"{run}/bad-records.tsv").read_text(encoding="utf-8").splitlines())
                  for run in ("one", "two")]
        self.assertEqual(*listed)
        self.fails(DATA, "max_bad", 2, *self.train_words(*more, 2, "--max-bad", 2, **words))
        self.no_run()

    # ---- ends, and going on ----

    def test_another_number_goes_on(self):
        """One process, stopped; four go on with its batch of 5, whose last has 2 rows; two end it."""
        more = [*SMALL, "--early-stopping", 0, "--quiet", "--batch", 5]
        self.good(*self.train_words(*more, run="whole", epochs=20), environment=self.alone)
        words = self.train_words(*more, run="cut", epochs=20)
        process = subprocess.Popen([self.program, *map(str, words)], stderr=subprocess.PIPE, env=self.alone)
        while not os.path.exists("cut/best.safetensors"):
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, STOPPED)
        four = self.start(4, "train", "--resume", "cut")
        pids = []
        for line in four.stdout:
            self.assertNotIn(b"error", line)
            pids = pids or children(four.pid)
            if b"batch of 5 examples is kept" in line:
                break
        four.send_signal(signal.SIGUSR1)  # mpirun passes it on
        code, out = self.ends(four, pids)
        self.assertIn(code, (STOPPED, DONE), out)
        if code == STOPPED:
            self.assertEqual(out.count("stopped in epoch"), 1)
            self.trains(2, "train", "--resume", "cut", "--quiet")
        self.same("whole", "cut")

    def test_one_is_killed(self):
        self.one_is_killed(3)

    def test_one_is_frozen(self):
        """mpirun does not see it; the others do."""
        process = self.begin(3, "new")
        pids = children(process.pid)
        os.kill(pids[1], signal.SIGSTOP)
        code, out = self.ends(process, pids)
        self.assertEqual(code, DEVICE, out)
        self.assertRegex(out, "process [012] of 3 .*has not been heard of for 5 seconds.*--resume")
        self.assertIn("has not been heard of", Path("new/log.txt").read_text(encoding="utf-8"))
        self.goes_on(1)

    # ---- failures ----

    def test_failures_are_told_once(self):
        words = self.train_words(*SMALL, run="file/run")
        Path("file").touch()
        self.fails(OUTPUT, "file", 2, *words)
        self.fails(DATA, "nowhere", 2, *self.train_words(*SMALL, train="nowhere/*.tfrec"))
        self.fails(USAGE, "--batch", 3, *self.train_words(*SMALL, "--batch", 0))
        self.trains(2, *self.train_words(*SMALL, "--quiet"))
        self.fails(USAGE, "--resume new", 2, *self.train_words(*SMALL))
        self.assertIn("nothing is left", self.trains(2, "train", "--resume", "new"))
        code, out = self.mpirun(2, "predict", "new", "--data", "flowers/test")
        self.assertEqual(code, USAGE, out)
        self.assertIn("without mpirun", out)
        answer = self.call(*self.train_words(*SMALL, run="alone"), environment={"TEPAL_PROCESS_TIMEOUT": "soon"})
        self.assertEqual(answer.code, DONE)  # alone it is of no interest
        self.environment["TEPAL_PROCESS_TIMEOUT"] = "soon"
        try:
            code, out = self.mpirun(2, *self.train_words(run="other"))
        finally:
            self.environment.update(MPI)
        self.assertEqual(code, USAGE, out)
        self.assertIn("TEPAL_PROCESS_TIMEOUT", out)

    def test_other_options(self):
        """What one was given otherwise is named before anything is trained; where files are may differ."""
        words = list(map(str, self.train_words(*SMALL, "--quiet")))
        for more in (["--rotate", "0"], ["--learning-rate", "0.01"], ["--validation-steps", "1"],
                     ["--precision", "bf16"], ["--weights", "imagenet"], ["--augment-on", "device"]):
            with self.subTest(more=more):
                self.fails(USAGE, more[0] + ": process 1 of 2", 1, *words, ":", "-n", "1",
                           self.program, *words, *more)
                self.no_run()
        Path("too").symlink_to("flowers")
        self.trains(1, *words, ":", "-n", "1", self.program, *(w.replace("flowers", "too") for w in words))

    # ---- several machines ----

    def test_network_namespaces(self):
        """Two hosts with nothing but a cable between them; then the cable is pulled."""
        if os.geteuid() != 0 or not shutil.which("ip") or not shutil.which("unshare"):
            print("skipped: network namespaces need root, ip and unshare", file=sys.stderr)
            return
        mark = f"tp{os.getpid() % 100000}"
        near, far = f"{mark}a", f"{mark}b"
        steps = [f"netns add {near}", f"netns add {far}",
                 f"link add {near} netns {near} type veth peer name {far} netns {far}",
                 f"-n {near} addr add 10.77.0.1/24 dev {near}", f"-n {far} addr add 10.77.0.2/24 dev {far}",
                 *(f"-n {n} link set {d} up" for n in (near, far) for d in ("lo", n))]
        try:
            for step in steps:
                if subprocess.run(["ip", *step.split()], stderr=subprocess.DEVNULL, check=False).returncode != 0:
                    print("skipped: no network namespaces may be made here", file=sys.stderr)
                    return
            self.across(near, far)
        finally:
            end_all(near, far)
            for name in (near, far):
                subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL, check=False)

    def across(self, near, far):
        agent = Path("agent")  # what mpirun calls in the place of ssh
        agent.write_text(f"#!/bin/sh\nshift\nexec ip netns exec {far} unshare -u sh -c \"hostname {far}; $*\"\n",
                         encoding="utf-8")
        agent.chmod(0o755)
        net = "10.77.0.0/24"
        before = ["ip", "netns", "exec", near, "unshare", "-u", "sh", "-c", f"hostname {near}; exec \"$@\"", "sh", "mpirun",
                  "--host", "10.77.0.1:1,10.77.0.2:1", "--mca", "plm_rsh_agent", str(agent.resolve()), "--mca", "btl",
                  "tcp,self", "--mca", "btl_tcp_if_include", net, "--mca", "oob_tcp_if_include", net]
        for name in MPI:
            before += ["-x", name]
        more = [*SMALL, "--quiet", "--batch"]
        self.good(*self.train_words(*more, 4, run="one", epochs=2), environment=self.alone)
        self.trains(2, *self.train_words(*more, 2, run="two", epochs=2), before=before)
        self.same("one", "two")
        process = self.begin(2, "new", before=before)
        subprocess.run(["ip", "-n", far, "link", "set", far, "down"], check=True)
        end = time.monotonic() + PATIENCE
        while here("tepal") and time.monotonic() < end:
            time.sleep(0.05)
        self.assertEqual(here("tepal"), [])
        end_all(near, far)  # mpirun would wait for the other machine as long as TCP does
        out = process.communicate(timeout=PATIENCE)[0].decode("utf-8", "replace")
        self.assertRegex(out, "process 1 of 2 .*has not been heard of for 5 seconds.*--resume")
        self.no_rubbish("new")
        self.good("predict", "new", "--data", "flowers/test", "--out", "s.csv")


if __name__ == "__main__":
    main()
