"""Proves that damaged, foreign, empty and odd data end in exit code 3 and one message with file, record and byte, that
nothing is left behind, and that --max-bad lets pass what it allows, and lists it. Cases B02 to B05, B08 and B09 of the
public fault reports; expected texts and figures are those of the reports, counted by hand."""
import gzip
import os
import resource
import shutil
import struct
import zlib
from pathlib import Path

from cli_testing import DATA, FIXTURES, SHARED, CliTest, example, field, main, masked_crc, record, write

PHOTO = (FIXTURES / "B08_whole.jpg").read_bytes()
R = (FIXTURES / "B02_good.tfrec").read_bytes()


def many(n=6, **more):
    return [example(image=PHOTO, **{"class": i % 3}, **more) for i in range(n)]


class Shards(CliTest):
    def refuse(self, pieces, train, *flags, **options):
        self.bad(DATA, ["training set", *([pieces] if isinstance(pieces, str) else pieces)],
                 *self.train_words(*flags, train=train), **options)
        self.no_run()

    def test_which_of_many(self):
        """B02: the file's name, the record's number and byte."""
        for bad, piece in ((R[:31] + bytes([R[31] ^ 1]) + R[32:], "data checksum"),
                           (R[:19] + bytes([R[19] ^ 1]) + R[20:], "length checksum")):
            for i in range(5):
                write(f"{i}.tfrec", *many())
            whole = Path("3.tfrec").read_bytes()
            Path("3.tfrec").write_bytes(whole + bad)
            start = len(whole)
            self.refuse(["3.tfrec", f"record 6 at byte {start}"], "[0-9].tfrec")  # "abc" is no Example
            Path("3.tfrec").write_bytes(whole + record(many()[0]) + bad[19:])
            self.refuse(["3.tfrec", "record 7 at byte", piece], "[0-9].tfrec")

    def test_compressed(self):
        """B03: gzip and zlib, also of several members, are read; a cut stream is an error."""
        plain = b"".join(map(record, many(12)))
        half = len(plain) // 2
        Path("a.tfrec").write_bytes(gzip.compress(plain))
        Path("b.tfrec").write_bytes(zlib.compress(plain))
        Path("c.tfrec").write_bytes(gzip.compress(plain[:half]) + gzip.compress(plain[half:]))
        for name in "abc":
            self.assertIn("1 file, 12 records", self.call("inspect", name + ".tfrec").out)
        self.good(*self.train_words("--quiet", train="c.tfrec"))
        shutil.rmtree("new")
        packed = gzip.compress(plain)
        Path("a.tfrec").write_bytes(packed[:len(packed) // 2])
        self.refuse(["a.tfrec", "compressed stream"], "a.tfrec")
        Path("a.tfrec").write_bytes(gzip.compress(b"no records " * 100))
        self.refuse(["a.tfrec", "text"], "a.tfrec")
        Path("a.tfrec").write_bytes(gzip.compress(b""))
        self.refuse(["a.tfrec", "empty"], "a.tfrec")

    def test_features(self):
        """B04: key, wanted and found type."""
        cases = [
            (example(image=PHOTO, **{"class": []}), ['"class"', "one int64"]),
            (example(image=PHOTO, **{"class": [1, 2]}), ['"class"', "one int64", "2 int64"]),
            (example(image=PHOTO, **{"class": 1.0}), ['"class"', "one int64", "float"]),
            (example(image=PHOTO, **{"class": b"3"}), ['"class"', "byte string"]),
            (example(image=PHOTO), ['"class"', "missing"]),
            (example(image=[PHOTO, PHOTO], **{"class": 1}), ['"image"', "one byte string", "2 byte strings"]),
            (example(image=b"", **{"class": 1}), ["picture is empty"]),
            (example(**{"class": 1}), ['"image"', "missing"]),
            (b"", ['"image"', "missing"]),
            (b"\xff" * 20, ["tf.train.Example"]),
        ]
        for payload, pieces in cases:
            with self.subTest(pieces=pieces):
                write("bad.tfrec", *many(), payload)
                self.bad(DATA, ["bad.tfrec", "record 6 at byte", *pieces], *self.train_words(train="bad.tfrec"))
                self.no_run()
        write("good.tfrec", *many(), example(image=PHOTO, name=b"more", extra=field(15, b"unknown"), **{"class": 2}))
        self.good(*self.train_words("--quiet", train="good.tfrec"))

    def test_labels(self):
        """B05: packed or not, 10-byte negative numbers, beyond 32 bits; out of the classes: refused."""
        write("a.tfrec", *many(), example(image=PHOTO, packed=False, **{"class": 2}))
        self.good(*self.train_words("--quiet", train="a.tfrec"))
        shutil.rmtree("new")
        for label in (3, -1, 2147483648, 2 ** 63 - 1, -2 ** 63):
            for packed in (True, False):
                write("a.tfrec", *many(), example(image=PHOTO, packed=packed, **{"class": label}))
                self.refuse(["a.tfrec", "record 6 at byte", f"label {label} is outside", "0...2"], "a.tfrec")
        write("a.tfrec", *many(), example(image=PHOTO, **{"class": 70000}))
        self.bad(DATA, ["70000", "7 examples", "labels"], *self.train_words(train="a.tfrec", labels=None))
        self.no_run()

    def test_label_base(self):
        write("one.tfrec", *[example(image=PHOTO, **{"class": i % 3 + 1}) for i in range(6)])
        self.refuse(["label 3", "label_base 1"], "one.tfrec")
        self.good(*self.train_words("--label-base", 1, "--quiet", train="one.tfrec", val="one.tfrec"))
        answer = self.bad(DATA, "faults", "inspect", "flowers/train", "--label-base", 1)
        self.assertIn("label 0 is outside 1...", answer.out)

    def test_one_class_and_no_data(self):
        write("same.tfrec", *[example(image=PHOTO, **{"class": 0})] * 4)
        self.bad(DATA, ["one class"], *self.train_words(train="same.tfrec", labels=None))
        self.no_run()
        self.good(*self.train_words("--quiet", val=None, run="v"))  # the training's own figures are watched instead
        self.refuse("0 files match nothing/*.tfrec", "nothing/*.tfrec")
        self.bad(DATA, ["validation set", "0 files match nothing"], *self.train_words(val="nothing"))
        self.no_run()

    def test_not_shards(self):
        os.mkdir("folder.tfrec")
        os.mkfifo("fifo.tfrec")
        os.symlink("nowhere", "broken.tfrec")
        os.symlink("loop.tfrec", "loop.tfrec")
        Path("none.tfrec").touch()
        Path("page.tfrec").write_text("<html>404</html>")
        Path("photo.tfrec").write_bytes(PHOTO)
        Path("text.tfrec").write_text("hello\n")
        Path("noise.tfrec").write_bytes(b"\xff" * 12)
        Path("short.tfrec").write_bytes(b"\0" * 5)
        cases = [("folder.tfrec", "holds no photos"), ("fifo.tfrec", "regular file"), ("broken.tfrec", "No such file"),
                 ("loop.tfrec", "symbolic links"), ("none.tfrec", "empty"), ("page.tfrec", "HTML"),
                 ("photo.tfrec", "JPEG"), ("text.tfrec", "text"), ("noise.tfrec", "length checksum"),
                 ("short.tfrec", "cut short"), ("/dev/zero", "regular file"), ("gs://bucket/x", "local files"),
                 ("[", "0 files match")]
        for name, piece in cases:
            with self.subTest(name=name):
                self.refuse([name, piece], name)

    def test_giant_lengths(self):
        """No attempt to read, skip or allocate by a length from the file."""
        def limits():
            if b"__asan" not in Path(self.program).read_bytes():  # which reserves terabytes
                resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
        for length in (1 << 30, 1 << 40, 1 << 62, (1 << 64) - 1):
            head = struct.pack("<Q", length)
            Path("long.tfrec").write_bytes(b"".join(map(record, many())) + head + struct.pack("<I", masked_crc(head)))
            self.refuse(["long.tfrec", "record 6 at byte"], "long.tfrec", limits=limits)
        huge = (FIXTURES / "B08_huge_header.jpg").read_bytes()
        write("huge.tfrec", *many(), example(image=huge, **{"class": 1}))
        self.bad(DATA, ["huge.tfrec", "record 6 at byte", "65500"], *self.train_words(train="huge.tfrec"), limits=limits)

    def test_pictures(self):
        """B08: what is no whole JPEG or PNG is refused with the record; junk behind the end is not."""
        cases = [("B08_one_frame.gif.jpg", "GIF"), ("B08_two_frames.gif.jpg", "GIF"), ("B08_half.jpg", "JPEG"),
                 ("B08_noEOI.jpg", "JPEG"), ("B08_error_page.jpg", "HTML")]
        for name, piece in cases:
            with self.subTest(name=name):
                write("p.tfrec", *many(), example(image=(FIXTURES / name).read_bytes(), **{"class": 1}))
                self.bad(DATA, ["p.tfrec", "record 6 at byte", piece], *self.train_words(train="p.tfrec"))
                self.no_run()
        write("p.tfrec", *many(), example(image=PHOTO + b"junk", **{"class": 1}),
              example(image=(FIXTURES / "B08_rgba.png.jpg").read_bytes(), **{"class": 1}))
        self.good(*self.train_words("--quiet", "--overwrite", train="p.tfrec"))

    def test_turned_photos(self):
        """B09: the report counts pictures with an EXIF flag."""
        write("t.tfrec", *many(), example(image=(FIXTURES / "B09_exif6.jpg").read_bytes(), **{"class": 1}))
        self.assertIn("1 picture has an EXIF flag", self.call("inspect", "t.tfrec").out)
        self.good(*self.train_words("--quiet", "--exif-rotate", train="t.tfrec"))

    def test_max_bad(self):
        broken = example(image=b"no picture", **{"class": 1})
        write("m.tfrec", *many(), b"\xff" * 20, broken, *many())
        for allowed, fine in ((0, False), (1, False), (2, True), ("10%", False), ("20%", True), ("100%", True)):
            with self.subTest(allowed=allowed):
                words = self.train_words("--quiet", "--overwrite", "--max-bad", allowed, train="m.tfrec")
                if not fine:
                    self.bad(DATA, ["m.tfrec", "record 6" if allowed == 0 else "record 7"], *words)
                    self.no_run()
                    continue
                answer = self.good(*words)
                self.assertIn("warning:", answer.err)
                listed = Path("new/bad-records.tsv").read_text(encoding="utf-8")
                self.assertEqual(listed.count("m.tfrec"), 2, listed)


class Labels(CliTest):
    def test_labels_files(self):
        os.mkfifo("fifo")
        cases = [("a\nb\n", ["label 2 is outside", "0...1"]), ("a\nb\na\n", ['"a"', "twice"]), ("a\n\nc\n", ["line 2", "empty"]),
                 ("", ["no class names"]), ("a\nb\0c\nd\n", ["line 2", "zero byte"]), ("x" * 2000, ["line 1", "limit"])]
        for text, pieces in cases:
            with self.subTest(text=text[:10]):
                Path("l.txt").write_text(text, encoding="utf-8")
                self.bad(DATA, pieces, *self.train_words(labels="l.txt"))
                self.no_run()
        for name, piece in (("missing.txt", "No such file"), ("flowers", "folder"), ("/dev/null", "device"), ("fifo", "no class names")):
            self.bad(DATA, ["--labels", name, piece], *self.train_words(labels=name))
        Path("l.txt").write_bytes("\ufeffÄ b\r\nc\r\n花".encode())
        self.good(*self.train_words("--quiet", labels="l.txt"))
        out = self.good("predict", "new", "--data", "flowers/test", "--out", "-", "--label-names").out
        self.assertTrue(all(line.split(",")[1] in ("Ä b", "c", "花") for line in out.splitlines()[1:]), out)


class Names(CliTest):
    def test_odd_names(self):
        for name in ("a b", "a,b", 'quo"te', "new\nline", "ümläut 花", "[x]*?", "-dash", "~", "%s%n"):
            with self.subTest(name=name):
                shutil.copytree(os.path.realpath("flowers"), "./" + name)
                self.good(*self.train_words("--quiet", train=f"./{name}/train/00-64x64-12.tfrec", run=f"./{name}/run",
                                            labels=f"./{name}/labels.txt"))
                self.good("predict", f"./{name}/run", "--data", f"./{name}/test", "--out", f"./{name}/s.csv")
                self.assertEqual(len(Path(name, "s.csv").read_text().splitlines()), 7)
        self.no_rubbish()

    def test_photos_with_odd_names(self):
        """A photo's path is its id: quoted in the CSV, and read back."""
        names = ["a b.jpg", "c,d.jpg", 'e"f.jpg', "ü.jpg"]
        for folder in ("red", "gr,een"):
            os.makedirs("p/" + folder)
            for name in names:
                Path("p", folder, name).write_bytes(PHOTO)
        self.good(*self.train_words("--quiet", train="p", val="p", labels=None))
        self.good("predict", "new", "--data", "p", "--out", "s.csv", "--label-names")
        self.good("evaluate", "--predictions", "s.csv", "--truth", "s.csv")
        text = Path("s.csv").read_text(encoding="utf-8")
        self.assertIn('"', text)
        self.assertEqual(len(text.splitlines()), 9)

    def test_links(self):
        os.symlink("flowers/train/00-64x64-12.tfrec", "link.tfrec")
        self.assertIn("12 records", self.good("inspect", "link.tfrec").out)
        self.assertIn("1 file, 12 records", self.good("inspect", "link.tfrec", "flowers/train/*.tfrec").out)


class Inspect(CliTest):
    def test_lists_all(self):
        write("x.tfrec", *many(), b"\xff" * 20, example(image=b"nothing", **{"class": 1}), *many())
        Path("y.tfrec").touch()
        os.mkfifo("z.tfrec")
        answer = self.bad(DATA, "faults in", "inspect", "*.tfrec", "--json", "found.json")
        for piece in ("record 6", "record 7", "y.tfrec", "z.tfrec"):
            self.assertIn(piece, answer.out)
        self.assertTrue(Path("found.json").read_text().startswith("{"))
        self.no_rubbish()

    def test_nothing_usable(self):
        write("x.tfrec", *[example(image__encoded=PHOTO, image__class__label=1)] * 3)
        self.bad(DATA, ["none of the 3 records", "x.tfrec", '"image"', "image/encoded"], "inspect", "x.tfrec")
        self.good("inspect", "x.tfrec", "--image-feature", "image/encoded", "--class-feature", "image/class/label")

    def test_shards_of_others(self):
        folder = SHARED / "data" / "tfrecords-by-others"
        if not folder.is_dir():
            print("skipped: no ../shared")
            return
        cifar, flowers = (next(folder.glob(p + "*")) for p in ("cifar", "flowers"))
        self.bad(DATA, ['"class"', '"label"'], *self.train_words(train=cifar, labels=None))
        words = ["--class-feature", "label"]
        self.good(*self.train_words(*words, "--quiet", train=cifar, val=cifar, labels=None))
        self.assertIn("examples  100", self.good("evaluate", "new", "--data", cifar, *words).out)
        self.bad(DATA, "image/encoded", *self.train_words(train=flowers, labels=None, run="tf"))
        words = ["--image-feature", "image/encoded", "--class-feature", "image/class/label"]
        self.good(*self.train_words(*words, "--quiet", train=flowers, val=flowers, labels=None, run="tf"))
        penguins = next(folder.glob("penguin*"))
        self.bad(DATA, ['"image"', "species"], *self.train_words(train=penguins, labels=None, run="none"))


if __name__ == "__main__":
    main()
