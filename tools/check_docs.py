#!/usr/bin/env python3
"""Checks that the documents speak of what is there: files, commands, flags, and the help texts they quote.

    tools/check_docs.py TEPAL [--write]     TEPAL: the program; --write: puts its help texts into the documents

A block between "<!-- help COMMAND -->" and "<!-- end -->" must be that command's --help. Ends with 1 when there is a fault.
"""
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = ["README.md", "CONTRIBUTING.md", "docs/GUIDE.md", "docs/DESIGN.md", "docs/FORMATS.md", "docs/RESULTS.md", "docs/PERFORMANCE.md", "man/tepal.1"]
# Of other programs, or of our scripts.
FOREIGN_FLAGS = {"--no", "--cflags", "--libs", "--logdir", "--write", "--recursive"}
PATH = re.compile(r"`((?:src|cli|include|examples|tests|tools|bench|docs|man)/[\w./-]+)`|\]\(([^)#\s]+)[^)]*\)")
QUOTED_HELP = re.compile(r"(<!-- help (\w+) -->\n).*?(<!-- end -->)", re.S)


def help_of(tepal, *words):
    return subprocess.run([tepal, *words, "--help"], capture_output=True, text=True, check=True).stdout


def main():
    tepal, write = sys.argv[1], "--write" in sys.argv[2:]
    commands = re.findall(r"^  (\w+) ", help_of(tepal), re.M)
    texts = {c: help_of(tepal, c) for c in commands}
    flags = {"--help", "--version"}
    for text in texts.values():
        for name in re.findall(r"--((?:\[no-\])?[\w-]+)", text):
            flags |= {"--" + name.replace("[no-]", ""), "--" + name.replace("[no-]", "no-")}
    faults, links = [], 0
    for name in DOCUMENTS:
        path = ROOT / name
        text = path.read_text()
        quoted = QUOTED_HELP.sub(lambda m: f"{m[1]}```\n{texts[m[2]]}```\n{m[3]}", text)
        if quoted != text and write:
            path.write_text(quoted)
        elif quoted != text:
            faults.append(f"{name}: quotes an older help text; tools/check_docs.py {tepal} --write")
        text = quoted.replace("\\-", "-")
        for number, line in enumerate(text.splitlines(), 1):
            for match in PATH.finditer(line):
                target = ROOT / match[1] if match[1] else path.parent / match[2]
                links += 1
                pattern = "..." in target.name or "NAME" in target.name
                if not pattern and not (match[2] or "").startswith("http") and not target.exists():
                    faults.append(f"{name}:{number}: {match[1] or match[2]} does not exist")
            for flag in re.findall(r"(?<![\w-])--[a-z][\w-]*\w", line):
                if flag not in flags | FOREIGN_FLAGS:
                    faults.append(f"{name}:{number}: tepal has no flag {flag}")
            for command in re.findall(r"(?:build/|^    |`)tepal ([a-z]+)", line):
                if command not in commands:
                    faults.append(f"{name}:{number}: tepal has no command {command}")
    for line in faults:
        print(line)
    print(f"documents: {len(DOCUMENTS)} read, {links} links, {len(faults)} faults")
    return 1 if faults or not links else 0


if __name__ == "__main__":
    sys.exit(main())
