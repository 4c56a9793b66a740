#!/usr/bin/env python3
"""check.py - does the code in the manual pages compile, and do they show structs as the headers have them?

  tests/man/check.py [PAGE ...]      all of docs/man, or some

A block of code (.Bd -literal) behind the synopsis is cut at empty lines and at "...". Each piece has to compile outside of
functions, or else in the body of one, behind the pieces before it and what the page has defined before. stand_ins.h declares what the
examples take from elsewhere. What a shell or a program prints does not count. In the synopsis only structs are looked at: the members
of each, without those that are reserved, are those of the public header, in its order. Prints what is wrong; the status is 0 if nothing is.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COMPILER = ["cc", "-std=gnu11", "-fsyntax-only", "-x", "c", "-I", str(ROOT / "include"), "-Wall", "-Wno-unused", "-Wno-uninitialized",
            "-Wno-maybe-uninitialized", "-Wno-strict-prototypes", "-Werror", "-"]
PRELUDE = (Path(__file__).parent / "stand_ins.h").read_text()
NOT_C = re.compile(r"^(\$ |ccc: |jq |cc |CC_[A-Z]+=)")


def blocks(page):
    """(in the synopsis?, line, code) of each."""
    section, code = "", None
    for number, line in enumerate(page.read_text().split("\n"), 1):
        if line.startswith(".Sh "):
            section = line[4:]
        elif line.startswith(".Bd -literal"):
            begin, code = number + 1, []
        elif line.startswith(".Ed") and code is not None:
            yield section == "SYNOPSIS", begin, "\n".join(code)
            code = None
        elif code is not None and not line.startswith("."):
            code.append(line.replace("\\&", "").replace("\\-", "-").replace("\\e", "\\"))


def errors(page, outside, body):
    """Of a function that returns nothing, or else a pointer."""
    for kind in ("void ", "void *") if body else ("",):
        function = f"{kind}in_a_function(void) {{\n{body}\n}}" if body else ""
        source = f"#define {page.name.replace('.', '_')}\n{PRELUDE}\n{outside}\n{function}\n"
        run = subprocess.run(COMPILER, input=source, text=True, capture_output=True)
        if run.returncode == 0:
            return ""
    return run.stderr


def compile_block(page, code, outside):
    """What of it is outside of functions, and what the compiler says of the first piece that it refuses, or nothing."""
    pieces = [piece for piece in re.split(r"\n\s*\n|\n?^\.\.\.$\n?", code, flags=re.M) if piece.strip()]
    body = ""
    while pieces:
        for n in range(1, len(pieces) + 1):  # an empty line may be within a function
            piece = "\n\n".join(pieces[:n]) + "\n"
            if not body and not errors(page, outside + piece, ""):
                outside += piece
                break
            if not errors(page, outside, body + piece):
                body += piece
                break
        else:
            return outside, errors(page, outside, body + pieces[0])
        del pieces[:n]
    return outside, ""


def structs(text):
    """Name and members of each struct that is defined there."""
    text = re.sub(r"/\*.*?\*/|CC__ZERO", "", text, flags=re.S)
    for match in re.finditer(r"typedef struct (\w+) \{(.*?)\n?\} \1;", text, flags=re.S):
        members = []
        inner = re.sub(r"union \{(.*?)\};", r"\1", match[2], flags=re.S)
        for member in inner.split(";"):
            pointer = re.search(r"\(\*\s*(\w+)\)", member)
            names = [pointer[1]] if pointer else [re.sub(r"\[.*", "", part).split()[-1].lstrip("*") for part in member.split(",") if part.split()]
            members += [name for name in names if name != "reserved"]
        yield match[1], members


def main():
    headers = {}
    for header in sorted((ROOT / "include/ccc").glob("*.h")):
        headers.update(structs(header.read_text()))
    pages = [Path(name) for name in sys.argv[1:]] or sorted((ROOT / "docs/man").glob("*.[37]"))
    wrong = checked = 0
    for page in pages:
        before = ""  # what earlier examples of the page have defined
        for synopsis, line, code in blocks(page):
            if NOT_C.match(code):
                continue
            checked += 1
            if synopsis:
                for name, members in structs(code):
                    if headers.get(name) != members:
                        wrong += 1
                        print(f"{page.name}:{line}: {name} has {', '.join(members)}; in the header {', '.join(headers.get(name, ['nothing']))}")
                continue
            outside, said = compile_block(page, code, before)
            if said:
                outside, said = compile_block(page, code, "")
            else:
                before = outside
            if said:
                wrong += 1
                print(f"{page.name}:{line}: does not compile:\n{code}\n{said}")
    print(f"{checked} blocks of code, {wrong} wrong")
    sys.exit(1 if wrong else 0)


main()
