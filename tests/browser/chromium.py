"""chromium.py - drives a headless Chromium through a pipe, with nothing but Python itself.

The browser reads commands from its descriptor 3 and writes answers and events to 4, as JSON that ends with a 0 (the DevTools
protocol, --remote-debugging-pipe). Whatever a page writes to its console as an error, or does not catch, is kept in `errors`.
"""
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time

PATIENCE = 180  # seconds for anything: the machine may be busy


def find():
    """The program; None: there is none."""
    for name in (os.environ.get("CHROMIUM"), "chromium", "chromium-browser", "google-chrome"):
        if name and shutil.which(name):
            return shutil.which(name)
    return None


class Browser:
    def __init__(self, program, width=1280, height=900):
        self.folder = tempfile.mkdtemp()
        to_read, self.to = os.pipe()
        self.came, to_write = os.pipe()
        self.buffer, self.number, self.errors, self.session = b"", 0, [], None

        def descriptors():
            # Out of the way first: 3 and 4 may be among them.
            a, b = os.dup2(to_read, 20), os.dup2(to_write, 21)
            os.dup2(a, 3, inheritable=True)
            os.dup2(b, 4, inheritable=True)

        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-extensions", "--disable-background-networking", "--hide-scrollbars", "--remote-debugging-pipe",
             f"--user-data-dir={self.folder}", f"--window-size={width},{height}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=descriptors,
            close_fds=False, start_new_session=True)
        os.close(to_read)
        os.close(to_write)
        try:
            self._attach()
        except BaseException:
            self.close()
            raise

    def _attach(self):
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(domain + ".enable")

    def _message(self, until):
        while b"\0" not in self.buffer:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.came], [], [], left)[0]:
                raise TimeoutError("the browser does not answer")
            data = os.read(self.came, 1 << 16)
            if not data:
                raise EOFError("the browser has ended")
            self.buffer += data
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def _event(self, message):
        kind, what = message.get("method"), message.get("params", {})
        if kind == "Runtime.exceptionThrown":
            self.errors.append(what["exceptionDetails"].get("exception", {}).get("description") or str(what))
        elif kind == "Runtime.consoleAPICalled" and what["type"] in ("error", "assert"):
            self.errors.append(str(what["args"]))
        elif kind == "Log.entryAdded" and what["entry"]["level"] == "error" and "503" not in what["entry"]["text"]:
            # 503: not available at that moment, on a very busy machine; the page asks again.
            self.errors.append(what["entry"]["text"] + " " + what["entry"].get("url", ""))

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.to, data):]
        until = time.monotonic() + PATIENCE
        while True:
            answer = self._message(until)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self._event(answer)

    def run(self, script, **more):
        """The value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True, **more)
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def open(self, address):
        self.call("Page.navigate", url=address)

    def wait(self, script, what):
        """Until the expression is true; its value."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            try:
                value = self.run(script)
            except RuntimeError:  # the page is being replaced
                value = None
            if value:
                return value
            time.sleep(0.1)
        raise TimeoutError(f"{what}; the page says: {self.run('document.body.innerText')}")

    def dark(self, on):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if on else "light"}])

    def picture(self, path, width, height):
        import base64
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        data = self.call("Page.captureScreenshot", format="png")["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def close(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self.to)
        os.close(self.came)
        shutil.rmtree(self.folder, ignore_errors=True)
