"""Compiles abi_check.c, which compares our declarations of the PJRT interface with the published header, against the
headers of two Python packages: xla-cpu-pjrt (0.81) and TensorFlow (0.90, of the interoperability tests). Where an
environment is not there its header is skipped, unless TEPAL_TEST_PJRT says that it is. The check is also compiled with
a wrong line, which must not pass.
"""
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SOURCE = Path(__file__).with_name("abi_check.c")
PLUGINS = Path(os.environ.get("TEPAL_TEST_PJRT") or ROOT / ".venv-pjrt")
HEADERS = {
    "0.81": (PLUGINS, "xla_plugins/xla_cpu_pjrt/include/pjrt_c_api.h"),
    "0.90": (ROOT / ".venv", "tensorflow/include/xla/pjrt/c/pjrt_c_api.h"),
}


class AbiTest(unittest.TestCase):
    compiler = "cc"

    def compile(self, header, *flags):
        words = [*self.compiler.split(), "-std=c11", "-fsyntax-only", f"-I{ROOT}/src", f"-isystem{header.parent}", *flags,
                 str(SOURCE)]
        return subprocess.run(words, capture_output=True, text=True, check=False)

    def header(self, version):
        folder, name = HEADERS[version]
        found = sorted(folder.glob(f"lib/python3*/site-packages/{name}"))
        if not found:
            if folder.is_dir() or (folder == PLUGINS and "TEPAL_TEST_PJRT" in os.environ):
                self.fail(f"there is no {name} in {folder}")
            print(f"skipped: no {folder}")
            self.skipTest(f"no {folder}")
        text = found[0].read_text()
        self.assertIn(f"PJRT_API_MINOR {version[2:]}\n", text)
        return found[0]

    def check(self, version):
        header = self.header(version)
        good = self.compile(header)
        self.assertEqual(good.returncode, 0, good.stderr)
        bad = self.compile(header, "-DBREAK")
        self.assertNotEqual(bad.returncode, 0)
        self.assertIn("wrong on purpose", bad.stderr)

    def test_header_of_xla_cpu_pjrt(self):
        self.check("0.81")

    def test_header_of_tensorflow(self):
        self.check("0.90")

    def test_every_field_is_compared(self):
        """Each struct and each function of pjrt_abi.h occurs in the check."""
        abi = (ROOT / "src/backend/pjrt/pjrt_abi.h").read_text()
        check = SOURCE.read_text()
        structs = re.findall(r"^typedef struct (tp__pjrt_\w+) \{(.*?)^\}", abi, flags=re.S | re.M)
        self.assertGreater(len(structs), 30)
        for name, body in structs:
            self.assertRegex(check, rf"\b{name},", name)
            body = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
            for function in re.findall(r"\(\*(\w+)\)\(", body):
                self.assertRegex(check, rf"\b{function},", f"{name}.{function}")
            if name != "tp__pjrt_api":
                for field in re.findall(r"(\w+);", body):
                    if field not in ("TP__PJRT_HEAD", "TP__PJRT_ROOM"):
                        self.assertRegex(check, rf"[(, .]{field}[,)]", f"{name}.{field}")


if __name__ == "__main__":
    AbiTest.compiler = sys.argv.pop(1) if len(sys.argv) > 1 else "cc"
    unittest.main()
