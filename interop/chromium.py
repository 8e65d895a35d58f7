"""Chromium without a window, told what to do."""

import fcntl
import json
import os
import subprocess


def pipe():
    """A pipe, neither end of which is a descriptor that the browser gets."""
    ends = os.pipe()
    moved = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 16) for end in ends]
    for end in ends:
        os.close(end)
    return moved


class Chromium:
    """Chromium, driven over a pair of pipes (the DevTools protocol)."""

    def __init__(self, binary, profile, *options, prefix=()):
        """`prefix` is a command that runs it."""
        to_read, self.out = pipe()
        self.into, to_write = pipe()
        arguments = [*prefix, binary, "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
                     f"--user-data-dir={profile}", "--window-size=1200,1080", "--hide-scrollbars", *options]

        def descriptors():
            os.dup2(to_read, 3)
            os.dup2(to_write, 4)

        self.process = subprocess.Popen(arguments, preexec_fn=descriptors, close_fds=False,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.number, self.rest, self.events = 0, b"", []

    def call(self, method, session=None, **parameters):
        """The result of a command. What the browser tells meanwhile is kept in `events`."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self.rest:
                more = os.read(self.into, 1 << 16)
                if not more:
                    raise RuntimeError("chromium has ended")
                self.rest += more
            text, self.rest = self.rest.split(b"\0", 1)
            answer = json.loads(text)
            if answer.get("id") != self.number:
                self.events.append(answer)
            elif "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']}")
            else:
                return answer["result"]

    def end(self):
        try:
            self.call("Browser.close")
            self.process.wait(5)
        except (OSError, RuntimeError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.into)
        os.close(self.out)
