"""Builds our programs and those of the rivals, and says which of them there are, and in which version."""

import os
import re
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "build" / "bench"
RIVALS = ROOT / "bench" / "rivals"


class BuildFailed(Exception):
    pass


def call(command, log):
    """Runs a command with its output in a log; the last lines of that go into the exception."""
    with open(OUT / log, "a") as f:
        f.write("$ " + " ".join(map(str, command)) + "\n")
        f.flush()
        if subprocess.run(command, cwd=ROOT, stdout=f, stderr=subprocess.STDOUT).returncode == 0:
            return
    raise BuildFailed("\n".join((OUT / log).read_text(errors="replace").splitlines()[-12:]))


def output(*command):
    try:
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.strip()
    except OSError:
        return ""


def first(pattern, text):
    found = re.search(pattern, text)
    return found.group(1) if found else ""


def compiler_version(command):
    return f"{command} {output(command, '-dumpfullversion')}"


def build_ccc():
    jobs = os.environ.get("JOBS", str(os.cpu_count()))
    call(["cmake", "--preset", "release"], "ccc.log")
    targets = ["bench_" + source.stem for source in sorted((ROOT / "bench").glob("*.c"))]
    targets += ["bench_work_" + source.stem for source in sorted((ROOT / "bench/work").glob("*.c"))]
    call(["cmake", "--build", "--preset", "release", "-j", jobs, "--target", *targets], "ccc.log")
    header = (ROOT / "include/ccc/cc_base.h").read_text()
    version = ".".join(first(rf"CC_VERSION_{part} (\d+)", header) for part in ("MAJOR", "MINOR", "PATCH"))
    commit = output("git", "rev-parse", "--short", "HEAD")
    return {"version": version, "built": compiler_version("gcc"), "commit": commit}


def find_go():
    """The newest Go of those that are there: distributions call theirs go-1.22 and put it aside."""
    found = {shutil.which("go"), "/usr/local/go/bin/go", *map(str, Path("/usr/lib").glob("go-*/bin/go"))}
    versions = []
    for path in filter(None, found):
        number = first(r"go version go([\d.]+)", output(path, "version"))
        if number:
            versions.append((tuple(map(int, number.strip(".").split("."))), number, path))
    return max(versions) if versions else None


def build_go():
    go = find_go()
    if go is None:
        raise BuildFailed("Go is not installed.")
    call([go[2], "build", "-o", OUT / "go", *sorted((RIVALS / "go").glob("*.go"))], "go.log")
    return {"version": go[1]}


def build_cargo(name, crates):
    if shutil.which("cargo") is None:
        raise BuildFailed("cargo is not installed.")
    source, target = OUT / f"{name}-src", OUT / f"{name}-build"  # apart from ours, because cargo writes beside the sources
    shutil.copytree(RIVALS / name, source, dirs_exist_ok=True)
    call(["cargo", "build", "--release", "--manifest-path", source / "Cargo.toml", "--target-dir", target], f"{name}.log")
    shutil.copy(target / "release" / "bench", OUT / name)
    lock = (source / "Cargo.lock").read_text()
    versions = {crate: first(rf'name = "{crate}"\nversion = "([\d.]+)"', lock) for crate in crates}
    built = "rustc " + first(r"rustc ([\d.]+)", output("rustc", "--version"))
    return {"version": versions.pop(crates[0]), "built": built, **versions}


def build_boost():
    header = Path("/usr/include/boost/version.hpp")
    if not header.exists() or not Path("/usr/include/boost/fiber/all.hpp").exists():
        raise BuildFailed("Boost.Fiber is not installed.")
    source = RIVALS / "boost.cpp"
    libraries = ["-lboost_fiber", "-lboost_context", "-pthread"]
    call(["g++", "-std=c++17", "-O2", "-DNDEBUG", source, "-o", OUT / "boost", *libraries], "boost.log")
    version = first(r'BOOST_LIB_VERSION "([\d_]+)"', header.read_text()).replace("_", ".")
    return {"version": version, "built": compiler_version("g++")}


def build_tbb():
    header = Path("/usr/include/oneapi/tbb/version.h")
    if not header.exists():
        raise BuildFailed("oneTBB is not installed.")
    call(["g++", "-std=c++17", "-O2", "-DNDEBUG", RIVALS / "tbb.cpp", "-o", OUT / "tbb", "-ltbb"], "tbb.log")
    version = ".".join(first(rf"TBB_VERSION_{part} (\d+)", header.read_text()) for part in ("MAJOR", "MINOR"))
    return {"version": version, "built": compiler_version("g++")}


def build_pthreads():
    call(["gcc", "-std=c11", "-O2", RIVALS / "pthreads.c", "-o", OUT / "pthreads", "-pthread"], "pthreads.log")
    return {"version": "glibc " + output("getconf", "GNU_LIBC_VERSION").split(" ")[-1], "built": compiler_version("gcc")}


BUILDERS = {
    "ccc": build_ccc,
    "go": build_go,
    "tokio": lambda: build_cargo("tokio", ["tokio", "flume"]),
    "may": lambda: build_cargo("may", ["may"]),
    "boost": build_boost,
    "tbb": build_tbb,
    "pthreads": build_pthreads,
}


def build(names, say):
    """Builds what can be built: a dict from name to what is known about it. Ours must succeed."""
    OUT.mkdir(parents=True, exist_ok=True)
    built = {}
    for name in names:
        (OUT / f"{name}.log").unlink(missing_ok=True)
        say(f"building {name}")
        try:
            built[name] = BUILDERS[name]()
        except BuildFailed as why:
            if name == "ccc":
                raise
            say(f"{name} takes no part: {why}", lasting=True)
    return built


def command(runtime, program, workers, scale, parameter):
    ours = ROOT / "build/release/bench"
    folder = ours / "work" if (ROOT / "bench/work" / f"{program}.c").exists() else ours
    start = [folder / program] if runtime == "ccc" else [OUT / runtime, program]
    tail = [] if parameter is None else [parameter]
    return list(map(str, [*start, workers, scale, *tail]))
