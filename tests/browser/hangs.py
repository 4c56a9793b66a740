#!/usr/bin/env python3
"""hangs.py BUILD [PICTURES NAME] - opens the live page of each of the seven programs of docs/hangs.md in Chromium, and finds the culprit in at most
two clicks; TAP. With PICTURES, a folder, it takes a picture there of the page of the program NAME, and opens no other.

A case names what "What is wrong" has to say, what is clicked there or among the fibers by place, and what the details then have to show: the function
and the line that docs/hangs.md names.
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(__file__))
import chromium  # noqa: E402

# The programs hang for ever: stopping this one stops them, too.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))

# name, program, kind of finding, what the clicks find, text of the details
HANGS = [
    ("lock_order", "examples/hangs/lock_order", "cycle", '[data-kind="cycle"] .fiber', ["transfer (lock_order.c:15)", "held by fiber"]),
    ("no_sender", "examples/hangs/no_sender", "deadlock", '[data-group]', ["serve (no_sender.c:7)", "channel 'jobs'"]),
    ("search", "examples/hangs/search", "stuck", '[data-kind="stuck"] .fiber', ["find (search.c:", "in this turn"]),
    ("blocked", "examples/hangs/blocked", "stuck", '[data-kind="stuck"] .fiber', ["read_settings (blocked.c:8)", "is blocked in a system call"]),
    ("busy", "examples/hangs/busy", "starved", '[data-kind="stuck"] .fiber', ["wait_until_ready (busy.c:12)", "poller"]),
    ("leak", "tests/browser/leak", "alone", '[data-kind="alone"] .fiber', ["answer (leak.c:8)", "channel 'answers'"]),
    ("shutdown", "tests/browser/shutdown", "shutdown", '[data-kind="shutdown"] .fiber', ["beat (shutdown.c:8)", "heart"]),
]


class Program:
    """One that hangs, and the address of its page."""

    def __init__(self, path):
        self.said = tempfile.TemporaryFile()
        environment = dict(os.environ, CC_VIEW="tcp", CC_DEADLOCK_ABORT="0", CC_DEBUG_STALL="0")
        for name in ("CC_WORKERS", "CC_SIM_SEED", "CC_RECORD", "CC_TRACE"):
            environment.pop(name, None)
        self.process = subprocess.Popen([path], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.said, env=environment)
        self.address = None
        until = time.monotonic() + chromium.PATIENCE
        while self.address is None and time.monotonic() < until:
            self.said.seek(0)
            for line in self.said.read().decode(errors="replace").splitlines():
                if line.startswith("ccc: view at http"):
                    self.address = line.split()[-1]
            if self.address is None:
                if self.process.poll() is not None:
                    break
                time.sleep(0.05)
        if self.address is None:
            self.end()
            raise RuntimeError(path + " has no page")

    def end(self):
        self.process.kill()
        self.process.wait()
        self.said.close()


def text_of(browser, selector):
    return browser.run(f"document.querySelector({json.dumps(selector)})?.innerText || ''")


def find_culprit(browser, program, kind, click, wanted):
    browser.open(program.address)
    browser.wait(f"""document.querySelector('[data-kind="{kind}"]') !== null""", f"no finding '{kind}'")
    if browser.run("location.search") != "":
        raise RuntimeError("the token stays in the address")
    if browser.call("Network.getCookies")["cookies"]:
        raise RuntimeError("there is a cookie, which every port of this machine gets")
    clicks = 0
    until = time.monotonic() + chromium.PATIENCE
    while True:  # the page is made anew every few seconds: what was found may be gone when it is clicked
        if browser.run(f"(e => e ? (e.click(), true) : false)(document.querySelector({json.dumps(click)}))"):
            clicks = 1
            for _ in range(50):
                details = text_of(browser, "#detail")
                if all(w in details for w in wanted):
                    return clicks
                time.sleep(0.1)
        if time.monotonic() > until:
            raise RuntimeError(f"{wanted} is not among the details: {text_of(browser, '#detail')!r}; the page: {text_of(browser, 'main')!r}")


def main():
    build = os.path.realpath(sys.argv[1])
    pictures = sys.argv[2] if len(sys.argv) > 2 else None
    program = chromium.find()
    if program is None:
        print("1..0 # SKIP there is no Chromium: tools/deps.sh test installs it")
        return 0
    hangs = [h for h in HANGS if not pictures or h[0] == sys.argv[3]]
    try:
        browser = chromium.Browser(program)
    except (OSError, RuntimeError, EOFError) as error:
        print(f"1..0 # SKIP {program} does not start here: {error}")
        return 0
    print(f"1..{len(hangs) + 2}", flush=True)
    bad, number = 0, 0
    try:
        for name, path, kind, click, wanted in hangs:
            number += 1
            hang = None
            try:
                hang = Program(os.path.join(build, path))
                clicks = find_culprit(browser, hang, kind, click, wanted)
                if browser.errors:
                    raise RuntimeError("errors on the console: " + "; ".join(browser.errors))
                if pictures:
                    browser.dark(False)
                    browser.wait("document.body.dataset.looks >= 4", "no rates")
                    browser.run(f"document.querySelector({json.dumps(click)}).click()")
                    time.sleep(1)
                    browser.picture(os.path.join(pictures, f"live-{name}.png"), 1200, 640)
                print(f"ok {number} - {name}, {clicks} click", flush=True)
            except Exception as error:  # pylint: disable=broad-except
                bad += 1
                print(f"not ok {number} - {name}\n# {error}".replace("\n", "\n# ").replace("# # ", "# "), flush=True)
            finally:
                browser.open("about:blank")
                browser.wait("location.href === 'about:blank'", "about:blank")
                browser.errors.clear()
                if hang:
                    hang.end()
        for name, check in (("light and dark", dark), ("the token", token)):
            number += 1
            try:
                check(browser, build)
                print(f"ok {number} - {name}", flush=True)
            except Exception as error:  # pylint: disable=broad-except
                bad += 1
                print(f"not ok {number} - {name}\n# {error}", flush=True)
    finally:
        browser.close()
    return 1 if bad else 0


def dark(browser, build):
    """The colours follow the reader's wish."""
    hang = Program(os.path.join(build, "examples/hangs/lock_order"))
    try:
        browser.open(hang.address)
        browser.wait("document.querySelector('#workers tr') !== null", "no workers")
        colours = []
        for on in (False, True):
            browser.dark(on)
            colours.append(browser.run("getComputedStyle(document.body).backgroundColor"))
        if colours[0] == colours[1]:
            raise RuntimeError(f"both are {colours[0]}")
        if browser.errors:
            raise RuntimeError("errors on the console: " + "; ".join(browser.errors))
    finally:
        browser.open("about:blank")
        hang.end()


def token(browser, build):
    """The page has it after it was loaded again, what it opens in another tab is there, and a tab that was not given it is told so."""
    hang = Program(os.path.join(build, "examples/hangs/lock_order"))
    shown = "document.querySelector('#workers tr') !== null"
    try:
        browser.open(hang.address)
        browser.wait(shown, "no workers")
        browser.run("document.body.dataset.old = 1")
        browser.call("Page.reload")
        browser.wait("document.body.dataset.old === undefined && " + shown, "no workers after a reload")
        if browser.errors:
            raise RuntimeError("errors on the console: " + "; ".join(browser.errors))
        browser.run("sessionStorage.clear()")
        browser.call("Page.reload")
        browser.wait("document.querySelector('#lost').innerText.startsWith('Not permitted')", "no word about the token")
        browser.open("about:blank")
        browser.wait("location.href === 'about:blank'", "about:blank")
        browser.errors.clear()  # the browser has written down that 403 came
        browser.open(hang.address)
        browser.wait(shown, "no workers with the address")
        browser.run("""document.querySelector('[data-open="dump"]').click()""", userGesture=True)
        until = time.monotonic() + chromium.PATIENCE
        while not any(t["url"].startswith("blob:http://127.0.0.1:") for t in browser.call("Target.getTargets")["targetInfos"]):
            if time.monotonic() > until:
                raise RuntimeError("the dump is not opened: " + text_of(browser, "#note"))
            time.sleep(0.1)
        if browser.errors:
            raise RuntimeError("errors on the console: " + "; ".join(browser.errors))
    finally:
        browser.open("about:blank")
        hang.end()


if __name__ == "__main__":
    sys.exit(main())
