"""What the tests of the command share: running it, a small set of drawn flowers, shards with faults of every kind.

Each test program is called with the path of the built tepal. It works in a temporary folder, which is the current
one, and judges the exit code, the one line of the error and what lies in the folder afterwards. Only the standard
library is used.
"""
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

DONE, INTERNAL, USAGE, DATA, DEVICE, OUTPUT, STOPPED = range(7)
PATIENCE = 60  # seconds, against hanging only
FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
SHARED = Path(__file__).resolve().parents[3] / "shared"

# ---- records, as the formats' descriptions say ----

TABLE = []
for byte in range(256):
    for _ in range(8):
        byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
    TABLE.append(byte)


def masked_crc(data):
    """CRC-32C, rotated and offset: https://www.tensorflow.org/tutorials/load_data/tfrecord"""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 255] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return (crc >> 15 | crc << 17) + 0xA282EAD8 & 0xFFFFFFFF


def record(payload):
    length = struct.pack("<Q", len(payload))
    return (length + struct.pack("<I", masked_crc(length)) + payload + struct.pack("<I", masked_crc(payload)))


def varint(value):
    value &= (1 << 64) - 1
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(number, payload):
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def feature(value, packed=True):
    """bytes, int, float, or a list of one of these, as a tf.train.Feature."""
    values = value if isinstance(value, list) else [value]
    if values and isinstance(values[0], bytes):
        return field(1, b"".join(field(1, v) for v in values))
    if values and isinstance(values[0], float):
        return field(2, field(1, struct.pack("<%df" % len(values), *values)))
    if packed:
        return field(3, field(1, b"".join(varint(v) for v in values)))
    return field(3, b"".join(varint(8) + varint(v) for v in values))


def example(extra=b"", packed=True, **features):
    """A tf.train.Example; a name with __ stands for one with /."""
    return field(1, b"".join(
        field(1, field(1, name.replace("__", "/").encode()) + field(2, feature(value, packed)))
        for name, value in features.items())) + extra


def write(path, *payloads):
    Path(path).write_bytes(b"".join(record(p) for p in payloads))
    return str(path)


# ---- running ----

def quick_folder():
    """In memory where there is room: each checkpoint waits until the disk has it."""
    memory = "/dev/shm"
    if not os.access(memory, os.W_OK):
        return None
    room = os.statvfs(memory)
    return memory if room.f_bavail * room.f_frsize > 2 << 30 else None


class Answer:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    @property
    def error(self):
        """The last line of standard error."""
        return self.err.strip().rsplit("\n", 1)[-1]


class CliTest(unittest.TestCase):
    """Each test starts in an empty temporary folder with flowers/ of 3 species in it: 12 train, 6 val, 6 test."""
    maxDiff = None
    program = None
    flowers = None

    @classmethod
    def setUpClass(cls):
        cls.box = tempfile.mkdtemp(prefix="tepal-cli-", dir=quick_folder())
        cls.made = os.path.join(cls.box, "made")
        os.mkdir(cls.made)
        os.chdir(cls.made)
        cls.environment = dict(os.environ, TEPAL_CACHE=os.path.join(cls.box, "cache"))
        cls.call("draw", "--out", "flowers", "--species", 3, "--train", 4, "--val", 2, "--test", 2, "--size", 64)

    @classmethod
    def tearDownClass(cls):
        os.chdir("/")
        shutil.rmtree(cls.box, ignore_errors=True)

    def setUp(self):
        folder = tempfile.mkdtemp(dir=self.box)
        os.chdir(folder)
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        os.symlink(os.path.join(self.made, "flowers"), "flowers")
        if os.path.isdir(os.path.join(self.made, "run")):
            shutil.copytree(os.path.join(self.made, "run"), "run")

    @classmethod
    def call(cls, *words, text=True, timeout=PATIENCE, limits=None, **options):
        """Runs tepal to its end and returns its answer, whatever the exit code."""
        environment = dict(cls.environment, **options.pop("environment", {}))
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("stdout", subprocess.PIPE)
        done = subprocess.run([cls.program, *map(str, words)], stderr=subprocess.PIPE, timeout=timeout,
                              env=environment, preexec_fn=limits, check=False, **options)
        out, err = done.stdout or b"", done.stderr or b""
        return Answer(done.returncode, out.decode("utf-8", "replace") if text else out, err.decode("utf-8", "replace"))

    def good(self, *words, **options):
        answer = self.call(*words, **options)
        self.assertEqual(answer.code, DONE, f"{words}: {answer.err}")
        self.assertNotIn("error:", answer.err)
        return answer

    def bad(self, code, pieces, *words, **options):
        """Fails with this code and one error line that holds all pieces."""
        answer = self.call(*words, **options)
        where = f"{words}: {answer.code}: {answer.err}"
        self.assertEqual(answer.code, code, where)
        self.assertEqual(sum("error:" in line or line.startswith("tepal: ") for line in answer.err.splitlines()), 1,
                         where)
        for piece in [pieces] if isinstance(pieces, str) else pieces:
            self.assertIn(piece, answer.error, where)
        return answer

    @staticmethod
    def train_words(*more, run="new", labels="flowers/labels.txt", train="flowers/train/*.tfrec",
                    val="flowers/val/*.tfrec", epochs=1):
        words = ["train", "--train", train]
        words += ["--val", val] if val else []
        words += ["--labels", labels] if labels else []
        words += ["--run", run, "--weights", "none", "--image-size", 64, "--batch", 4, "--epochs", epochs]
        return words + list(more)

    def no_run(self, run="new"):
        """A run that never began leaves nothing behind."""
        self.assertFalse(os.path.exists(run), run)

    def no_rubbish(self, folder="."):
        """No temporary or partial file is left anywhere."""
        left = [str(p) for p in Path(folder).rglob("*") if ".tmp" in p.name or ".partial" in p.name]
        self.assertEqual(left, [])


def one_run(cls):
    """A decorator: the class's folders start with a trained run."""
    set_up = cls.setUpClass.__func__

    def made(klass):
        set_up(klass)
        answer = klass.call(*klass.train_words("--quiet", run="run", epochs=2))
        if answer.code != DONE:
            raise AssertionError(answer.err)

    cls.setUpClass = classmethod(made)
    return cls


def main():
    CliTest.program = os.path.abspath(sys.argv.pop(1))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    unittest.main()
