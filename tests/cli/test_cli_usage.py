"""Proves that wrong flags, values and words are refused with exit code 2 (or 4 for a device), one message that names
the flag and says what is wanted, and no run folder. Expected texts: written here, by hand. Covers the option parts of
B10 (steps), B20 and B22 (monitors), B28 (device), B42 (class weights) and B45 (rotation)."""
import os
import shutil
from pathlib import Path

from cli_testing import DATA, DEVICE, DONE, USAGE, CliTest, main

# (flags, pieces of the message)
FLAGS = [
    (["--lerning-rate", 1], ["--lerning-rate", "is --learning-rate meant?"]),
    (["--learning_rat", 1], ["is --learning-rate meant?"]),
    (["--thread", 1], ["is --threads meant?"]),
    (["--resum", "x"], ["is --resume meant?"]),
    (["--fine-tune", 1], ["is --fine-tune-epochs meant?"]),
    (["--xyzzy"], ["--xyzzy", "no such flag"]),
    (["-e", 3], ["-e", "two dashes"]),
    (["--epochs", "ten"], ["--epochs", '"ten"', "whole number"]),
    (["--epochs", "1.5"], ["--epochs", "whole number"]),
    (["--epochs", ""], ["empty"]),
    (["--epochs="], ["--epochs", "empty"]),
    (["--labels", ""], ["--labels", "empty"]),
    (["--epochs"], ["--epochs", "value is wanted"]),
    (["--epochs", "--overwrite"], ["--epochs", "value is wanted"]),
    (["--epochs", -1], ["--epochs", "-1", "0 to 1000000"]),
    (["--epochs", "99999999999999999999"], ["--epochs", "fits"]),
    (["--epochs", 0], ["epochs", "nothing to do"]),
    (["--batch", 0], ["--batch", "1 to 65536"]),
    (["--batch", 100000000], ["--batch", "100000000"]),
    (["--learning-rate", 0], ["--learning-rate"]),
    (["--learning-rate", "nan"], ["--learning-rate", "not a number"]),
    (["--learning-rate", "1e999"], ["--learning-rate", "not a number"]),
    (["--learning-rate", "0,001"], ["--learning-rate", "not a number"]),
    (["--dropout", 1], ["--dropout"]),
    (["--rotate", 36], ["--rotate", "fraction of a turn"]),
    (["--rotate", 1.01], ["--rotate", "fraction of a turn"]),
    (["--rotate", -0.1], ["--rotate", "fraction of a turn"]),
    (["--no-rotate"], ["--no-rotate", "takes a value"]),
    (["--no-flip=false"], ["--no-flip", "takes no value"]),
    (["--flip=perhaps"], ["--flip", "true or false"]),
    (["--quiet=1"], ["--quiet", "takes no value"]),
    (["--rotate-fill", "black"], ["--rotate-fill", "constant"]),
    (["--image-size", 31], ["31x31", "32 to 4096"]),
    (["--image-size", 0], ["--image-size", "192"]),
    (["--image-size", 100000], ["--image-size", "16384"]),
    (["--image-size", "64x"], ["--image-size", "HEIGHTxWIDTH"]),
    (["--optimizer", "adamw"], ["--optimizer", "adam or sgd"]),
    (["--schedule", "linear"], ["--schedule", "cosine"]),
    (["--schedule", "piecewise"], ["--boundaries"]),
    (["--schedule", "piecewise", "--boundaries", "3,2", "--values", "1,2,3"], ["--boundaries", "rising"]),
    (["--schedule", "piecewise", "--boundaries", "2,3", "--values", "1,2"], ["--values", "3 rates"]),
    (["--best-monitor", "acc"], ["--best-monitor", "val_accuracy"]),
    (["--early-stopping-monitor", "val_f1"], ["--early-stopping-monitor", "val_macro_f1"]),
    (["--plateau-factor", 1], ["--plateau-factor"]),
    (["--steps-per-epoch", 5], ["training set", "5 steps", "3 are available"]),
    (["--validation-steps", 5], ["validation set", "5 steps", "2 are available"]),
    (["--class-weights", "0:2,200:1"], ["--class-weights", "class 200", "0...2"]),
    (["--class-weights", "0:-1"], ["--class-weights", "class 0"]),
    (["--class-weights", "0:nan"], ["--class-weights", "class 0"]),
    (["--class-weights", "heavy"], ["--class-weights", "balanced"]),
    (["--model", "no-network"], ["no-network", "efficientnet-lite0"]),
    (["--model", "efficientnet-b99"], ["efficientnet-b99", "efficientnet-b0"]),
    (["--max-bad", "x"], ["max_bad"]),
    (["--max-bad", "101%"], ["max_bad"]),
    (["--max-bad", -1], ["max_bad"]),
    (["--cache", "ram"], ["--cache", "pixels"]),
    (["--cache", "pixels", "--cache-limit", 10], ["147.5 KB", "limit"]),
    (["--cache-limit", "much"], ["--cache-limit", "4G"]),
    (["--seed", -1], ["--seed"]),
    (["--label-smoothing", 2], ["--label-smoothing"]),
    (["--shuffle", -2], ["shuffle"]),
    (["--interleave", 0], ["--interleave"]),
    (["--threads", "2x"], ["--threads", "1024"]),
    (["--threads", ""], ["empty"]),
    (["--threads="], ["--threads", "empty"]),
    (["--threads", 100000], ["--threads", "1024"]),
    (["--fine-tune-epochs", 1, "--fine-tune-layers", 500], ["--fine-tune-layers", "237"]),
    (["--fine-tune-epochs", 1, "--fine-tune-layers", 0], ["--fine-tune-layers"]),
    (["a.ini", "b.ini"], ["b.ini", "one recipe"]),
    (["flowers/train"], ["flowers/train", "recipe", "--train"]),
    ([""], ["empty"]),
]

# (words, pieces of the message)
COMMANDS = [
    (["trian"], ["trian", '"train"']),
    (["frobnicate"], ["frobnicate", "--help"]),
    (["--threads", 2, "train"], ["--threads"]),
    (["predict"], ["which run"]),
    (["predict", "run"], ["which data"]),
    (["evaluate"], ["--data", "--truth"]),
    (["evaluate", "run"], ["which data"]),
    (["evaluate", "--predictions", "a.csv"], ["one CSV each"]),
    (["evaluate", "run", "--truth", "a.csv"], ["either"]),
    (["inspect"], ["of what"]),
    (["pack"], ["what?"]),
    (["pack", "flowers"], ["--out"]),
    (["draw"], ["--out"]),
    (["draw", "flowers"], ["--out"]),
    (["draw", "--out", "d", "--device", "tpu"], ["--device", "no such flag"]),
    (["draw", "--out", "d", "--species", 33], ["species"]),
    (["draw", "--out", "d", "--size", 100000], ["size"]),
    (["summary"], ["one network"]),
    (["summary", "efficientnet-b99"], ["efficientnet-b99"]),
    (["summary", "efficientnet-b0", "--classes", "many"], ["--classes", "many"]),
    (["weights"], ["list"]),
    (["weights", "get"], ["list"]),
    (["weights", "get", "vgg"], ["vgg", "efficientnet-b0"]),
    (["devices", "x"], ["no words"]),
    (["demo", "x"], ["--out"]),
    (["demo", "--out", "d", "--seed", "ten"], ["--seed"]),
]


class Usage(CliTest):
    def test_flags_of_train(self):
        for flags, pieces in FLAGS:
            with self.subTest(flags=flags):
                shutil.rmtree("new", ignore_errors=True)
                self.bad(USAGE, pieces, *self.train_words(*flags))
                self.no_run()

    def test_commands(self):
        for words, pieces in COMMANDS:
            with self.subTest(words=words):
                self.bad(USAGE, pieces, *words)
                self.assertEqual(os.listdir(), ["flowers"])

    def test_what_is_missing(self):
        self.bad(USAGE, ["--run", "runs/first"], "train", "--train", "flowers/train/*.tfrec")
        self.bad(USAGE, ["--train"], "train", "--run", "new", "--weights", "none")
        self.no_run()
        self.bad(DATA, ["nothing.ini", "No such file"], "train", "nothing.ini")

    def test_devices(self):
        self.bad(USAGE, ['"abacus"', "auto, tpu, gpu, cpu"], *self.train_words("--device", "abacus"))
        self.bad(DEVICE, ["/no/such.so", "no such file"], *self.train_words("--device", "/no/such.so"))
        self.bad(USAGE, ["replicas", "one replica"], *self.train_words("--replicas", 2, "--device", "cpu"))
        for words in (self.train_words("--device", "cpu"), ["doctor", "efficientnet-b0"]):
            self.bad(USAGE, ["precision", "bf16", "avx512_bf16", "TEPAL_CPU", "float32"], *words, "--precision", "bf16",
                     environment={"TEPAL_CPU": "baseline"})
        self.bad(USAGE, ["accumulate", '"half"'], *self.train_words("--accumulate", "half"))
        self.bad(DEVICE, ["TEPAL_CPU", "nonsense", "avx2"], *self.train_words(), environment={"TEPAL_CPU": "nonsense"})
        self.no_run()

    def test_list_of_devices(self):
        lines = self.good("devices").out.splitlines()
        names = [line[2:5] for line in lines if line[2:5].strip()]
        self.assertEqual(names[:2], ["tpu", "gpu"])
        self.assertIn("cpu", names)
        for line in lines:
            if line[2:5] in ("tpu", "gpu", "cpu"):
                self.assertRegex(line, r"^[* ] \w+ +(not used: .+|.+; \d+ replicas?.*)$")
        self.assertEqual(sum(line.startswith("* ") for line in lines), 2)  # the chosen one and the legend
        for line in lines:  # asked for by name, what is not there is an error with the same reason
            name, _, reason = line[2:].partition("  not used: ")
            if reason and name.strip():
                self.bad(DEVICE, [f"device: {name.strip()}: {reason}"], *self.train_words("--device", name.strip()))
                self.no_run()
        cpu = self.good("devices", "--device", "cpu", "--threads", 1).out
        self.assertRegex(cpu, r"^  cpu  1 thread, .*; 1 replica, [\d.]+ GB memory\n$")
        answer = self.call("devices", "--device", "/no/such.so")
        self.assertEqual(answer.code, DEVICE)
        self.assertIn("/no/such.so  not used: PJRT plugin /no/such.so: there is no such file", answer.out)
        nonsense = self.call("devices", "--device", "cpu", environment={"TEPAL_CPU": "nonsense"})
        self.assertEqual(nonsense.code, DEVICE)
        self.assertIn("not used: environment variable TEPAL_CPU", nonsense.out)

    def test_recipes(self):
        cases = [("epochs = ten", "line 1"), ("\nlerning_rate = 1", "line 2"), ("epochs", "line 1"), ("\0\0\0", "train"),
                 ("= 3", "line 1"), ("x" * 100000, "line 1")]
        for text, piece in cases:
            with self.subTest(text=text[:20]), open("r.ini", "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                self.bad(USAGE, [piece], "train", "r.ini", "--run", "new")
                self.no_run()

    def test_flags_win_over_the_recipe(self):
        with open("r.ini", "w", encoding="utf-8") as file:
            file.write("[anything]\n# comment\nepochs = 1\nmodel = nonsense\nweights = none\nimage_size = 64\n"
                       "train = flowers/train/*.tfrec\nrun = new\n")
        self.bad(USAGE, "nonsense", "train", "r.ini")
        self.good("train", "r.ini", "--model", "efficientnet-b0")
        self.assertIn("model = efficientnet-b0", Path("new/recipe.ini").read_text(encoding="utf-8"))

    def test_help(self):
        top = self.good("--help").out
        self.assertEqual(self.good("help").out, top)
        self.assertEqual(self.call().code, USAGE)
        self.assertRegex(self.good("--version").out, r"^tepal \d+\.\d+\.\d+\n$")
        for line in top.splitlines()[4:]:
            if not line.startswith("  "):
                break
            text = self.good(line.split()[0], "--help").out
            self.assertTrue(text.startswith("tepal " + line.split()[0]))
            self.assertLessEqual(max(map(len, text.splitlines())), 100)

    def test_steps(self):
        """B10: with 2 of 3 steps no warning; the batch may be larger than the data."""
        self.assertEqual(self.call(*self.train_words("--steps-per-epoch", 2, "--quiet")).err, "")
        self.assertEqual(self.call(*self.train_words("--batch", 1000, "--overwrite", "--quiet")).err, "")

    def test_class_without_weight(self):
        """B42: classes that the table leaves out are listed and weigh 1."""
        answer = self.good(*self.train_words("--class-weights", "0:2", "--quiet"))
        self.assertIn("warning: class_weights: 2 of 3 classes", answer.err)
        self.assertEqual(answer.code, DONE)


if __name__ == "__main__":
    main()
