"""A server for tests: starts it, seeds it, saves and restores databases, stops it.

It needs nothing but Python. The fixtures for pytest are in orrery_test_kit.fixtures.
"""

import atexit
import base64
import collections
import hashlib
import hmac
import json
import os
import re
import shutil
import subprocess
import threading
import urllib.error
import urllib.parse
import urllib.request
from email.utils import formatdate

# The well-known key of emulators, which is good on this machine only.
DEVELOPMENT_KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="
STOP_S = 10

__all__ = ["Orrery", "OrreryError", "start_orrery"]


class OrreryError(Exception):
    """The server, or a request to it, has failed; the message has its words."""


def find_binary(binary=None):
    found = binary or os.environ.get("ORRERY") or shutil.which("orrery")
    if not found:
        raise OrreryError("there is no 'orrery': name it with 'binary', with ORRERY in the environment, or put it on the PATH")
    return found


def _environment(key):
    # Names that begin with ORRERY_ are options of the server. Those of the shell must not change tests.
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ORRERY")}
    return {**kept, "ORRERY_KEY": key}


class Orrery:
    """A running server. `stop` ends it and removes its data; so does the end of this process."""

    def __init__(self, binary=None, seed=None, args=(), key=DEVELOPMENT_KEY, is_throttled=False, timeout_s=60):
        self.key = key
        self._binary = find_binary(binary)
        self._log = collections.deque(maxlen=200)
        is_path = isinstance(seed, (str, os.PathLike))
        command = [self._binary, "serve", "--temporary", "--stop-at-eof", "--host", "127.0.0.1", "--port", "0"]
        command += ["--durability", "relaxed"] + ([] if is_throttled else ["--no-rate-limit"])
        command += (["--seed", os.fspath(seed)] if is_path else []) + list(args)
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        try:
            self._process = subprocess.Popen(command, env=_environment(key), text=True, **pipes)
        except OSError as error:
            raise OrreryError(f"cannot start '{self._binary}': {error}") from None
        atexit.register(self.stop)
        self._endpoint_seen = threading.Event()
        self.endpoint = None
        threading.Thread(target=self._read_output, daemon=True).start()
        seen = self._endpoint_seen.wait(timeout_s)
        if not seen or self.endpoint is None:
            self.stop()
            raise OrreryError("orrery did not get ready:\n" + self.log)
        self.connection_string = f"AccountEndpoint={self.endpoint}/;AccountKey={key};"
        if seed is not None and not is_path:
            try:
                self.seed(seed)
            except OrreryError:
                self.stop()
                raise

    def _read_output(self):
        for line in self._process.stdout:
            self._log.append(line)
            found = re.match(r"  Endpoint +(https?://\S+?)/\s", line)
            if found:
                self.endpoint = found[1]
                self._endpoint_seen.set()
        self._endpoint_seen.set()

    @property
    def log(self):
        """The last lines of the server's log."""
        return "".join(self._log)

    @property
    def pid(self):
        return self._process.pid

    def seed(self, file, folder=None):
        """Makes the server have what a seed file says: its path, or its content as a dict."""
        is_path = isinstance(file, (str, os.PathLike))
        command = [self._binary, "seed", "--endpoint", self.endpoint]
        command += (["--insecure"] if self.endpoint.startswith("https:") else []) + [os.fspath(file) if is_path else "-"]
        content = "" if is_path else json.dumps(file)
        ended = subprocess.run(command, env=_environment(self.key), cwd=folder, input=content, capture_output=True, text=True)
        if ended.returncode != 0:
            raise OrreryError(f"orrery seed ended with {ended.returncode}:\n{ended.stderr}")
        return ended.stdout

    def _ask(self, method, path, link, kind):
        date = formatdate(usegmt=True)
        text = f"{method.lower()}\n{kind}\n{link}\n{date.lower()}\n\n"
        digest = hmac.new(base64.b64decode(self.key), text.encode(), hashlib.sha256).digest()
        token = urllib.parse.quote(f"type=master&ver=1.0&sig={base64.b64encode(digest).decode()}", safe="")
        headers = {"authorization": token, "x-ms-date": date, "x-ms-version": "2020-07-15"}
        request = urllib.request.Request(self.endpoint + path, method=method, headers=headers)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # the proxy is for the web
        try:
            with opener.open(request, timeout=60) as answer:
                body = answer.read()
        except urllib.error.HTTPError as error:
            raise OrreryError(f"{method} {path}: {error.code} {error.read().decode(errors='replace')}") from None
        return json.loads(body) if body else None

    def _ask_snapshot(self, method, database, name, action=""):
        # Signed like a request for the database itself.
        path = f"/_orrery/dbs/{urllib.parse.quote(database, safe='')}/snapshots/{urllib.parse.quote(name, safe='')}{action}"
        return self._ask(method, path, f"dbs/{database}", "dbs")

    def snapshot(self, database, name="clean"):
        """Saves the state of a database under a name; an older one of that name is replaced."""
        return self._ask_snapshot("PUT", database, name)

    def restore(self, database, name="clean"):
        """Takes a database back to what was saved."""
        return self._ask_snapshot("POST", database, name, "/restore")

    def drop_snapshot(self, database, name="clean"):
        return self._ask_snapshot("DELETE", database, name)

    def snapshots(self):
        return self._ask("GET", "/_orrery/snapshots", "", "")

    def stop(self):
        """Ends the server and removes its data. May be called again."""
        atexit.unregister(self.stop)
        if self._process.stdin and not self._process.stdin.closed:
            self._process.stdin.close()
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def start_orrery(**options):
    """Starts a server on a free port, with its data in a temporary folder, and waits until it is ready."""
    return Orrery(**options)
