#!/usr/bin/env python3
"""Checks the rules of docs/DESIGN.md and CONTRIBUTING.md that a script can check, and lists every fault as FILE:LINE.

    tools/check_structure.py [ROOT]

The rooms (folders of src/) include each other only in the directions of ROOMS; cli/ and examples/ see nothing but
tepal.h; file names are unique; no file is over 600 lines and no function over 60; every file opens with a comment, the main header of a
room with a long one; some functions are not called at all. Ends with 1 when there is a fault. Runs as a test.
"""
import re
import sys
from pathlib import Path

# Room: (rooms it may include, its main header).
ROOMS = {
    "base": ("", "base.h"),
    "data": ("base", "catalog.h"),
    "image": ("base", "image.h"),
    "pipeline": ("base data image", "pipeline.h"),
    "prepare": ("base data image", "prepare.h"),
    "graph": ("base", "graph.h"),
    "model": ("base graph", "net.h"),
    "backend": ("base graph", "backend.h"),
    "train": ("base data image pipeline graph model backend", "fit.h"),
    "report": ("base data train", "report.h"),
    "api": ("base data image pipeline prepare graph model backend train report", "context.h"),
}
LINES_MAX, FUNCTION_MAX, INTRODUCTION_MIN = 600, 60, 8

# Banned: why.
BANNED = {
    r"strcpy|strcat|stpcpy|sprintf|vsprintf|gets": "writes without a limit",
    r"atoi|atol|atoll|atof": "can't tell a wrong number from 0; strtol and strtod can",
    r"strtok|localtime|gmtime|asctime|ctime|readdir_r|rand|srand": "has hidden state",
    r"alloca|system|popen|mktemp|tmpnam": "is unsafe",
}
# Not in the library: it reports and returns.
BANNED_IN_LIBRARY = {
    r"printf|puts|putchar|perror|vprintf": "prints",
    r"exit|abort|quick_exit|assert": "ends the program",
    r"setlocale|signal|sigaction|chdir|putenv|setenv": "changes the whole process",
}
# (file, function): the reason why it is right there.
ALLOWED = {
    ("src/base/child.c", "sigaction"): "in the child process",
    ("src/backend/pjrt/ahead.c", "setenv"): "in the child process",
    ("src/backend/pjrt/probe.c", "setenv"): "in the child process",
}
# File: why a long function is right there.
LONG = {"src/model/pickle.c": "one case for each opcode"}
SPACES = re.compile(r"[^\n]")


def blank(match):
    return SPACES.sub(" ", match.group())


def code_of(text):
    """The text with comments and strings blanked, lines kept."""
    token = r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
    return re.sub(token, blank, text, flags=re.S)


class Check:
    def __init__(self, root):
        self.root = root
        self.faults = []

    def name(self, path):
        return str(path.relative_to(self.root))

    def fault(self, path, line, what):
        self.faults.append(f"{self.name(path)}:{line}: {what}")

    def files(self, *folders):
        for folder in folders:
            for path in sorted((self.root / folder).rglob("*")):
                if path.suffix in (".c", ".h", ".inc") and path.is_file():
                    yield path

    def names(self):
        seen = {}
        for path in self.files("src", "cli", "include"):
            other = seen.setdefault(path.name, path)
            if other != path:
                self.fault(path, 1, f"has the name of {self.name(other)}")

    def includes(self, path, text):
        where = path.relative_to(self.root).parts
        for number, line in enumerate(text.splitlines(), 1):
            match = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
            if match is None or match[1] == "tepal.h":
                continue
            name = match[1]
            if where[0] == "examples":
                self.fault(path, number, f'an example includes "{name}"; users have tepal.h only')
            elif where[0] == "cli":
                if not (path.parent / name).is_file():
                    self.fault(path, number, f'cli includes "{name}"; it may use tepal.h only')
            elif where[1] in ROOMS and "/" in name:
                room, other = where[1], name.split("/")[0]
                if other != room and other not in ROOMS[room][0].split():
                    self.fault(path, number, f'{room} includes "{name}"; {room} may include: {ROOMS[room][0] or "nothing"}')

    def calls(self, path, code):
        library = path.relative_to(self.root).parts[0] == "src"
        rules = {**BANNED, **BANNED_IN_LIBRARY} if library else BANNED
        for names, why in rules.items():
            for match in re.finditer(rf"(?<![\w.>])({names})\s*\(", code):
                if (self.name(path), match[1]) in ALLOWED:
                    continue
                self.fault(path, code.count("\n", 0, match.start()) + 1, f"{match[1]} {why}")

    def shape(self, path, text, code):
        lines = text.splitlines()
        tests = self.name(path).startswith("tests/")  # there a long table of cases is fine
        if not text.startswith("/*"):
            self.fault(path, 1, "does not open with a comment that says what the file is")
        if len(lines) > LINES_MAX:
            self.fault(path, len(lines), f"{len(lines)} lines, {LINES_MAX} at most")
        for number, line in enumerate(lines, 1):
            if re.search(r"\b(TODO|FIXME|XXX)\b", line):
                self.fault(path, number, "unfinished work belongs in an issue")
        start = 0  # functions open with "{" in the first column and close with "}" there
        for number, line in enumerate(code.splitlines(), 1):
            if line.startswith("{"):
                start = number
            elif line.startswith("}") and start:
                if number - start - 1 > FUNCTION_MAX and self.name(path) not in LONG and not tests:
                    self.fault(path, start, f"function of {number - start - 1} lines, {FUNCTION_MAX} at most")
                start = 0

    def rooms(self):
        for folder in sorted(p for p in (self.root / "src").iterdir() if p.is_dir()):
            if folder.name not in ROOMS:
                self.fault(folder, 1, "a room that tools/check_structure.py does not know")
                continue
            header = folder / ROOMS[folder.name][1]
            if not header.is_file():
                self.fault(header, 1, "the room's main header is missing")
                continue
            comment = re.match(r"/\*.*?\*/", header.read_text(), flags=re.S)
            if comment is None or comment[0].count("\n") + 1 < INTRODUCTION_MIN:
                self.fault(header, 1, f"a room's main header opens with {INTRODUCTION_MIN} lines or more: what it is, rules, neighbours")

    def run(self):
        self.names()
        self.rooms()
        count = 0
        for path in self.files("src", "cli", "examples", "bench", "include", "tests"):
            text = path.read_text()
            code = code_of(text)
            count += 1
            self.shape(path, text, code)
            if path.relative_to(self.root).parts[0] not in ("tests", "bench"):
                self.includes(path, text)
                self.calls(path, code)
        return count


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve()
    check = Check(root)
    count = check.run()
    for line in check.faults:
        print(line)
    print(f"structure: {count} files, {len(check.faults)} faults")
    return 1 if check.faults or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
