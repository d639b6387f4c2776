"""A headless Chromium for tests, driven by its DevTools protocol over a pipe, without package, port
or network.

Messages are JSON, each ended by a zero byte; Chromium reads them from its file descriptor 3 and
answers on 4.
"""

import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
_FLAGS = (
    "--headless=new --remote-debugging-pipe --disable-gpu --disable-dev-shm-usage "
    "--disable-quic --no-first-run "
    "--disable-background-networking --disable-component-update --disable-sync "
    "--disable-extensions --mute-audio --password-store=basic --hide-scrollbars about:blank"
).split()
_PLACE = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); "
    "os.execv(sys.argv[3], sys.argv[3:])"
)
_PATIENCE = 60  # seconds for one answer, on a busy machine


class Browser:
    """Shows one page at a time: `open` loads a file, `value` evaluates JavaScript, `complaints` are
    the console's messages.
    """

    def __init__(self, write_end, read_end):
        self._to = write_end
        self._from = read_end
        self._buffer = b""
        self._last = 0
        self._session = None
        self.complaints = []
        self._asked = {}
        self._loaded = set()
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")
        self.send("Page.setLifecycleEventsEnabled", enabled=True)

    @property
    def requests(self):
        """The URLs requested since `open`, without those that the page's policy refused."""
        return list(self._asked.values())

    def send(self, method, **params):
        """Send a command, and give its result."""
        self._last += 1
        message_id = self._last
        message = {"id": message_id, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == message_id:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]

    def _next(self):
        """The next message; events of the page are recorded."""
        end = time.monotonic() + _PATIENCE
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._from], [], [], max(0, end - time.monotonic()))
            assert ready, "the browser does not answer"
            data = os.read(self._from, 1 << 20)
            assert data, "the browser ended"
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\0")
        message = json.loads(line)
        method = message.get("method")
        params = message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.complaints.append(
                params["exceptionDetails"].get("exception", {}).get("description", "exception")
            )
        elif method == "Runtime.consoleAPICalled" and params["type"] in (
            "error",
            "warning",
            "assert",
        ):
            self.complaints.append(
                " ".join(str(param.get("value", param)) for param in params["args"])
            )
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.complaints.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self._asked[params["requestId"]] = params["request"]["url"]
        elif method == "Network.loadingFailed" and params.get("blockedReason"):
            self._asked.pop(params["requestId"], None)
        elif method == "Page.lifecycleEvent" and params["name"] == "load":
            self._loaded.add(params["loaderId"])
        return message

    def open(self, path, fragment="", width=1280, height=900, dark=False):
        """Load a file or an http address anew, at a width in CSS pixels."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.send("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])
        self._go("about:blank")  # or another fragment would not load the page anew
        self.complaints = []
        self._asked = {}
        self._go(
            (path if str(path).startswith("http") else Path(path).resolve().as_uri()) + fragment
        )

    def _go(self, url):
        loader = self.send("Page.navigate", url=url)["loaderId"]
        while loader not in self._loaded:
            self._next()

    def value(self, expression):
        """The value of a JavaScript expression in the page; a promise is awaited."""
        done = self.send(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def press(self, key):
        """Press and release the key of a character, Enter, Tab or an arrow."""
        typed = {"text": key} if len(key) == 1 else {}
        if key == "Enter":
            typed = {"text": "\r"}
        code = {"Tab": 9, "ArrowUp": 38, "ArrowDown": 40}.get(key, 0)
        self.send(
            "Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **typed
        )
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key)

    def type(self, text):
        """Put text where the cursor is, as from a keyboard."""
        self.send("Input.insertText", text=text)


@contextmanager
def browser():
    """A running browser; on leaving, all of its processes end."""
    assert CHROMIUM, "no Chromium on the PATH"
    (its_read, our_write) = os.pipe()
    (our_read, its_write) = os.pipe()
    profile = tempfile.mkdtemp(prefix="chromium-")
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    command = [CHROMIUM, *sandbox, f"--user-data-dir={profile}", *_FLAGS]
    # Clear of 3 and 4
    ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (its_read, its_write)]
    process = subprocess.Popen(
        [sys.executable, "-IS", "-c", _PLACE, *map(str, ends), *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=ends,
        start_new_session=True,
    )
    for end in (its_read, its_write, *ends):
        os.close(end)
    try:
        yield Browser(our_write, our_read)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        os.close(our_write)
        os.close(our_read)
        shutil.rmtree(profile, ignore_errors=True)
