"""What a priority field value asks for (RFC 9218 section 4), read without the server's code: a
dictionary of structured fields (RFC 9651), of which all but `u` and `i` is ignored."""

import re
from typing import NamedTuple


class Priority(NamedTuple):
    urgency: int = 3
    incremental: bool = False

    def __str__(self) -> str:
        return f"u={self.urgency}" + (", i" if self.incremental else "")


class Malformed(ValueError):
    """The field value is no dictionary."""


KEY = re.compile(r"[a-z*][a-z0-9_.*-]*")
BARE_ITEM = re.compile(
    r"""(?P<decimal>-?\d{1,12}\.\d{1,3}(?![\d.]))
    |(?P<integer>-?\d{1,15}(?![\d.]))
    |(?P<string>"(?:[ !#-\[\]-~]|\\["\\])*")
    |(?P<token>[A-Za-z*][A-Za-z0-9!#$%&'*+.^_`|~:/-]*)
    |(?P<bytes>:[A-Za-z0-9+/=]*:)
    |(?P<boolean>\?[01])
    |(?P<date>@-?\d{1,15}(?![\d.]))
    |(?P<display>%"(?:[ !#$&-~]|%[0-9a-f]{2})*")""",
    re.VERBOSE,
)


class Reader:
    """Reads a dictionary from its beginning on."""

    def __init__(self, text: str) -> None:
        self.text = text.strip(" ")
        self.at = 0

    def take(self, pattern: str | re.Pattern) -> re.Match | None:
        match = re.compile(pattern).match(self.text, self.at)
        if match:
            self.at = match.end()
        return match

    def expect(self, pattern: str | re.Pattern) -> re.Match:
        match = self.take(pattern)
        if match is None:
            raise Malformed(f"{self.text!r} at {self.at}")
        return match

    def bare_item(self) -> tuple[str | None, str]:
        match = self.expect(BARE_ITEM)
        return match.lastgroup, match.group()

    def parameters(self) -> None:
        while self.take("; *"):
            self.expect(KEY)
            if self.take("="):
                self.bare_item()

    def value(self) -> tuple[str | None, str]:
        if not self.take(r"\("):
            item = self.bare_item()
            self.parameters()
            return item
        self.take(" *")
        while not self.take(r"\)"):
            self.bare_item()
            self.parameters()
            self.expect(r" +|(?=\))")
        self.parameters()
        return "list", ""

    def dictionary(self) -> dict[str, tuple[str | None, str]]:
        members = {}
        while self.at < len(self.text):
            key = self.expect(KEY).group()
            if self.take("="):
                members[key] = self.value()
            else:
                members[key] = "boolean", "?1"
                self.parameters()
            if self.at < len(self.text):
                self.expect(r"[ \t]*,[ \t]*(?!$)")
        return members


def parse(text: str) -> Priority:
    """Raises Malformed if it cannot be read at all."""
    members = Reader(text).dictionary()
    priority = Priority()
    kind, value = members.get("u", (None, ""))
    if kind == "integer" and 0 <= int(value) <= 7:
        priority = priority._replace(urgency=int(value))
    kind, value = members.get("i", (None, ""))
    if kind == "boolean":
        priority = priority._replace(incremental=value == "?1")
    return priority
