"""A program on a pseudo-terminal, and what a person would see there."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

TOKEN = re.compile(
    r"\x1b\[([?0-9;]*)([A-Za-z])|(\r\n|\r|\n)|(\x1b.|[\x00-\x1f])|([^\x1b\x00-\x1f]+)", re.S
)


class Screen:
    """As much of a terminal as rich uses: text that wraps, line ends, the cursor up, lines
    erased."""

    def __init__(self, width: int) -> None:
        self.width, self.lines, self.row, self.column = width, [""], 0, 0

    def feed(self, text: str) -> None:
        for found in TOKEN.finditer(text):
            number, command, end, _, words = found.groups()
            if command == "A":
                self.row = max(0, self.row - int(number or 1))
            elif command == "K":
                self.lines[self.row] = ""
            elif end:
                self.column = 0
                if end != "\r":
                    self._down()
            for letter in words or "":
                if self.column == self.width:
                    self.column = 0
                    self._down()
                line = self.lines[self.row].ljust(self.column)
                self.lines[self.row] = line[: self.column] + letter + line[self.column + 1 :]
                self.column += 1

    def _down(self) -> None:
        self.row += 1
        if self.row == len(self.lines):
            self.lines.append("")

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


class Program:
    """`ludus` with these arguments on a terminal of its own, so that Ctrl-C goes to it and not to
    the tests."""

    def __init__(self, arguments: list[str], width: int, height: int = 24) -> None:
        self.screen, self.seen = Screen(width), ""
        self.process, self.terminal = pty.fork()
        if self.process == 0:
            os.environ |= {"COLUMNS": str(width), "LINES": str(height), "TERM": "xterm-256color"}
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL)  # whoever runs the tests may ignore some
            os.execv(sys.executable, [sys.executable, "-m", "ludus", *arguments])
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def until(self, words: str, seconds: float = 120.0) -> None:
        """Reads until the words are on the screen."""
        end = time.monotonic() + seconds
        while words not in self.screen.text:
            assert self._read(end), f"'{words}' did not come:\n{self.screen.text}"

    def press(self, key: bytes) -> None:
        os.write(self.terminal, key)

    def wait(self, seconds: float = 60.0) -> int:
        """Reads to the end; the exit status."""
        end = time.monotonic() + seconds
        while self._read(end):
            pass
        os.close(self.terminal)
        return os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])

    def _read(self, end: float) -> bool:
        if not select.select([self.terminal], [], [], max(0.0, end - time.monotonic()))[0]:
            return False
        try:
            text = os.read(self.terminal, 65536).decode(errors="replace")
        except OSError:  # the program has ended
            return False
        self.seen += text
        self.screen.feed(text)
        return bool(text)
