"""Proves that predictions and scores are those of the records, whatever the threads, batches and orders of lines, and
that weights and CSV files that do not fit are refused with a message that says why. Cases B11, B17, B19, B41 and B43 of
the public fault reports; figures calculated by hand, as told there."""
import math
import os
import shutil
import struct
import time
import zipfile
from pathlib import Path

from cli_testing import DATA, USAGE, CliTest, example, main, one_run, write


def csv(name, *lines):
    Path(name).write_text("".join(line + "\n" for line in lines), encoding="utf-8")


@one_run
class Predictions(CliTest):
    def predict(self, *words, data="flowers/test"):
        return self.good("predict", "run", "--data", data, "--out", "-", *words).out

    def test_threads_and_batches(self):
        for words in ([], ["--probabilities"], ["--tta", "flip,rotate=20", "--probabilities"]):
            want = self.predict(*words)
            self.assertEqual(len(want.splitlines()), 7)
            for threads in (1, 2, 5):
                self.assertEqual(self.predict("--threads", threads, *words), want)
            self.assertEqual(self.predict("--batch", 1, *words), want)

    def test_bfloat16(self):
        """Training goes on in it, answers are near those of float32; B25: the counts are whole."""
        if "avx512_bf16" not in Path("/proc/cpuinfo").read_text(encoding="utf-8").split():
            self.skipTest("this processor has no products of bfloat16")
        bf16 = ["--precision", "bf16", "--device", "cpu"]
        self.good(*self.train_words(*bf16, run="half", epochs=2))
        self.assertIn("AVX-512, bfloat16 products; batch", Path("half/log.txt").read_text(encoding="utf-8"))
        self.assertIn("precision = bf16", Path("half/recipe.ini").read_text(encoding="utf-8"))
        self.assertIn("nothing is left", self.good("train", "--resume", "half").err)
        both = [self.predict("--probabilities", *words).splitlines() for words in ([], bf16)]
        self.assertNotEqual(*both)
        for one, other in zip(*(lines[1:] for lines in both)):
            a, b = ([float(x) for x in line.split(",")[1:]] for line in (one, other))
            self.assertTrue(all(abs(x - y) < 0.05 for x, y in zip(a, b)), (a, b))
            self.assertAlmostEqual(sum(b), 1, places=5)
        scores = self.good("evaluate", "run", "--data", "flowers/val", *bf16).out
        accuracy = float(scores.split("accuracy")[1].split()[0])
        self.assertAlmostEqual(accuracy * 6, round(accuracy * 6), places=4)  # six pictures

    def test_views(self):
        """B43: no augmentation in predictions; an ensemble of a run with itself is that run."""
        plain = self.predict("--probabilities")
        self.assertEqual(self.predict("--probabilities"), plain)
        twice = self.good("predict", "run", "run", "--data", "flowers/test", "--out", "-", "--probabilities").out
        for one, other in zip(plain.splitlines()[1:], twice.splitlines()[1:]):
            a, b = ([float(x) for x in line.split(",")[1:]] for line in (one, other))
            self.assertTrue(all(math.isclose(x, y, rel_tol=1e-6) for x, y in zip(a, b)))
            self.assertAlmostEqual(sum(a), 1, places=5)
        for tta, piece in (("rot", "flip"), ("rotate=", "flip"), ("rotate=400", "180"), ("rotate=x", "degrees")):
            self.bad(USAGE, ["--tta", piece], "predict", "run", "--data", "flowers/test", "--tta", tta)

    def test_counts_and_ids(self):
        words = ["predict", "run", "--out", "s.csv", "--data"]
        self.bad(DATA, ["6 records", "7 are expected"], *words, "flowers/test", "--expect", 7)
        photo = (Path(__file__).parent.parent / "fixtures/B08_whole.jpg").read_bytes()
        write("twice.tfrec", *[example(image=photo, id=b"same")] * 2)
        self.bad(DATA, ['"same"', "more than once"], *words, "twice.tfrec")
        write("broken.tfrec", example(image=photo, id=b"a"), example(image=photo[:300], id=b"b"))
        self.bad(DATA, ["broken.tfrec", "record 1"], *words, "broken.tfrec")
        self.bad(DATA, ["0 files match"], *words, "nothing/*.tfrec")
        self.assertFalse(os.path.exists("s.csv"))
        self.no_rubbish()

    def test_names_of_classes(self):
        csv("other.txt", "x", "y", "z")
        words = ["predict", "run", "--data", "flowers/test", "--out", "-", "--label-names"]
        self.assertEqual(self.good(*words, "--labels", "flowers/labels.txt").out, self.good(*words).out)
        self.bad(DATA, ["other.txt", "class 0", '"x"'], *words, "--labels", "other.txt")
        csv("other.txt", "x", "y")
        self.bad(DATA, ["other.txt", "2 names", "3 classes"], *words, "--labels", "other.txt")

    def test_runs_that_are_none(self):
        os.mkdir("bare")
        for name, piece in (("nothing", "no such run"), ("bare", "best.safetensors"), ("run/best.h5", "no checkpoint"),
                            ("run/log.txt", "not a weight file")):
            self.bad(DATA, [name, piece], "predict", name, "--data", "flowers/test", "--out", "s.csv")
        self.bad(DATA, ["runs/nothing", "no such run"], "doctor", "runs/nothing")
        whole = Path("run/best.safetensors").read_bytes()
        for keep in (0, 5, 100, 100000, len(whole) - 1):
            Path("cut.safetensors").write_bytes(whole[:keep])
            self.bad(DATA, "cut.safetensors", "predict", "cut.safetensors", "--data", "flowers/test", "--out", "s.csv")
        self.assertFalse(os.path.exists("s.csv"))

    def test_scores_of_a_run(self):
        self.assertIn("examples  6", self.good("evaluate", "run", "--data", "flowers/val").out)
        self.bad(DATA, ["missing", '"class"'], "evaluate", "run", "--data", "flowers/test")

    def test_one_class_all_right(self):
        """B11: macro F1 averages over what occurs: 1 when only class 0 is there and found."""
        csv("p.csv", "id,label", "a,0", "b,0", "c,0")
        self.assertIn("macro F1  1.000000", self.good("evaluate", "--predictions", "p.csv", "--truth", "p.csv").out)


class Files(CliTest):
    def score(self, *more, code=0, piece=""):
        words = ["evaluate", "--predictions", "p.csv", "--truth", "t.csv", *more]
        return self.bad(code, piece, *words) if code else self.good(*words)

    def test_figures(self):
        """B11: labels 0,0,1,1,2 predicted 0,0,1,2,2: accuracy 0.8, macro F1 0.7778; the lines' order is no matter."""
        csv("t.csv", "id,label", "a,0", "b,0", "c,1", "d,1", "e,2")
        csv("p.csv", "id,label", "e,2", "d,2", "c,1", "b,0", "a,0")
        out = self.score().out
        self.assertIn("accuracy  0.800000", out)
        self.assertIn("macro F1  0.777778", out)
        csv("p.csv", "label,more,id", "rose,x,a", "rose,x,b", "rose,x,c")
        csv("t.csv", "\ufeffkey;".replace(";", ",") + "class", "c,rose", "b,lily", "a,rose", "")
        out = self.score("--truth-id-column", "key", "--truth-label-column", "class").out
        self.assertIn("accuracy  0.666667", out)

    def test_faults(self):
        good = ["id,label", "a,0", "b,1"]
        cases = [
            (good + ["a,1"], good, ["p.csv", '"a"', "lines 2 and 4"]),
            (good, good + ["c,1"], ['"c"', "t.csv", "not in p.csv"]),
            (good + ["c,1"], good, ['"c"', "p.csv", "not in t.csv"]),
            (["name,label", "a,0"], good, ["p.csv", '"id"', "name, label"]),
            (good, ["id,class", "a,0"], ["t.csv", '"label"', "id, class"]),
            (["id,label", "a"], good, ["p.csv", "line 2"]),
            (["id,label"], good, ["p.csv", "no lines"]),
            ([], good, ["p.csv", "empty"]),
            (["id,label", "a,-1", "b,0"], good, ["p.csv", "line 2", "-1"]),
            (["id,label", 'a,"0', "b,1"], good, ["p.csv"]),
        ]
        for predictions, truth, pieces in cases:
            with self.subTest(pieces=pieces):
                csv("p.csv", *predictions)
                csv("t.csv", *truth)
                self.score(code=DATA, piece=pieces)
        os.remove("p.csv")
        self.score(code=DATA, piece=["p.csv", "No such file"])
        os.mkdir("p.csv")
        self.score(code=DATA, piece=["p.csv", "folder"])


@one_run
class Weights(CliTest):
    def refuse(self, pieces, weights, *more):
        self.bad(DATA, pieces, *self.train_words("--weights", weights, *more))
        self.no_run()

    def test_other_heads(self):
        """B17: layer and both shapes; with --skip-mismatch the rest is loaded, and the counts are told."""
        csv("five.txt", "a", "b", "c", "d", "e")
        for name in ("run/best.h5", "run/best.safetensors"):
            self.refuse([name, "predictions", "(1280, 3)", "(1280, 5)", "--skip-mismatch"], name, "--labels", "five.txt")
            answer = self.good(*self.train_words("--weights", name, "--labels", "five.txt", "--skip-mismatch"))
            self.assertIn("loaded 312 of 314 arrays, skipped 2", answer.err)
            shutil.rmtree("new")
        answer = self.good(*self.train_words("--weights", "run/best.h5"))
        self.assertIn("loaded 314 of 314 arrays, skipped 0", answer.err)

    def test_other_names(self):
        """B17: no name matches: an error, never a quiet start from random weights."""
        head = b'{"x/kernel":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
        Path("names.safetensors").write_bytes(struct.pack("<Q", len(head)) + head + bytes(8))
        self.refuse(["0 of 314 arrays matched", "x/kernel"], "names.safetensors")

    def test_another_network(self):
        answer = self.good(*self.train_words("--weights", "run/best.h5", "--model", "efficientnet-lite0", "--quiet"))
        self.assertIn("another network", answer.err)

    def test_saved_and_read(self):
        """B19: what was saved as .h5 and as .safetensors is the same network."""
        for name in ("best.h5", "best.safetensors"):
            self.good(*self.train_words("--weights", "run/" + name, "--quiet", run=name[5:]))
        self.assertEqual(Path("h5/best.safetensors").read_bytes(), Path("safetensors/best.safetensors").read_bytes())

    def test_files_that_are_none(self):
        whole = Path("run/best.h5").read_bytes()
        os.mkfifo("fifo.h5")
        os.symlink("nowhere", "broken.h5")
        Path("empty.h5").touch()
        Path("text.h5").write_text("hello\n")
        Path("huge.safetensors").write_bytes(b"\xff" * 7 + b"\x7f{}")
        Path("none.safetensors").write_bytes(struct.pack("<Q", 2) + b"{}")
        for keep in (100, 3000, len(whole) // 2):
            Path(f"cut{keep}.h5").write_bytes(whole[:keep])
        with zipfile.ZipFile("run.pth", "w") as file:
            file.writestr("archive/data.pkl", b'cos\nsystem\n(S"touch made-by-pickle"\ntR.')
        with zipfile.ZipFile("bare.keras", "w") as file:
            file.writestr("config.json", "{}")
        cases = [("nothing.h5", "No such file"), ("flowers", "folder"), ("fifo.h5", "regular file"),
                 ("broken.h5", "No such file"), ("empty.h5", "empty"), ("text.h5", "not a weight file"),
                 ("huge.safetensors", "limit"), ("none.safetensors", "no arrays"), ("cut100.h5", "HDF5"),
                 ("cut3000.h5", "HDF5"), (f"cut{len(whole) // 2}.h5", "HDF5"), ("run.pth", "refused"),
                 ("bare.keras", "without weights"), ("/dev/zero", "device"), ("imagnet", "No such file")]
        for name, piece in cases:
            with self.subTest(name=name):
                self.refuse([name, piece], name)
        self.assertFalse(os.path.exists("made-by-pickle"))

    def test_no_network(self):
        """Without cache and network: a quick end that tells how to put the file there by hand. No proxy answers."""
        start = time.monotonic()
        words = self.train_words("--weights", "imagenet")
        environment = {"TEPAL_CACHE": os.path.abspath("cache")}
        environment.update({name: "http://127.0.0.1:9" for name in ("https_proxy", "http_proxy", "HTTPS_PROXY", "ALL_PROXY")})
        self.bad(DATA, ["efficientnet-b0", "by hand", "https://", os.path.abspath("cache")], *words,
                 environment=environment)
        self.assertLess(time.monotonic() - start, 30)
        self.bad(DATA, "missing/*.tfrec", *self.train_words("--weights", "imagenet", train="missing/*.tfrec"),
                 environment=environment)  # data that aren't there are found before
        self.bad(USAGE, "resnet50-v3", *self.train_words("--weights", "imagenet", "--model", "resnet50-v3"),
                 environment=environment)
        self.no_run()
        self.no_rubbish()


if __name__ == "__main__":
    main()
