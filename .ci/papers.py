"""Whether what docs/papers.md says of the papers is there: the names that their mechanisms have here, the documents
that give reasons, and the counts at its top. Tests are looked for by `documents`, as in all other documents.

A name in the column "here" is, by its form:

- `crates/proto/src/recovery`: a file or folder of the repository
- `--loss-reaction`: an option of the command
- `View`, `LMAX`, `byte_index()`, `View::missing`: something that the sources define, and something of a type or trait
- `tail`, `block:code=2d`, `exp_b`, `holzinger-bulk`: a policy with its parameters, a parameter of priorities or an
  experiment, which the sources have as text in quotes"""

import re

STATES = ("as described", "reason", "differs", "missing")
COLUMNS = ["section", "mechanism", "here", "test", "state", "what differs, and why"]
SUMMARY = ["paper", *STATES, "rows", "without a test"]
DEFINITION = re.compile(r"\b(?:fn|struct|enum|trait|const|static|type|mod)\s+(?:mut\s+)?(\w+)")
OWNER = re.compile(r"\bimpl\b[^;{]*?\b([A-Z]\w*)(?:<[^{]*?>)?\s*(?:where[^{]*)?\{")
LITERAL = re.compile(r'"([a-z][a-z0-9_-]*)"')
OPTION = re.compile(r"#\[arg\((.*?)\)\]\s*(?:#\[.*?\]\s*)*(?:pub(?:\(\w+\))? )?(\w+):", re.DOTALL)
LINK = re.compile(r"\]\(([^)#]+)")
NAMES = re.compile(r"`([^`]+)`")


class Names:
    """What the sources define, and which words they have in quotes."""

    def __init__(self, texts):
        """`texts` are paths and their contents."""
        self.texts = dict(texts)
        self.places, self.literals, self.options = {}, set(), set()
        for path, text in self.texts.items():
            for pattern in (DEFINITION, OWNER):
                for found in pattern.finditer(text):
                    self.places.setdefault(found[1], set()).add(path)
            self.literals.update(LITERAL.findall(text))
            if path.startswith("crates/cli/"):
                self.options.update(options(text))

    def has(self, name, root):
        if "/" in name:
            return (root / name).exists()
        if name.startswith("--"):
            return name.removeprefix("--") in self.options
        if "::" in name:
            owner, member = name.removesuffix("()").split("::")[-2:]
            return any(self.defines(path, member) for path in self.places.get(owner, ()))
        if name[0].isupper() or name.endswith("()"):
            return name.removesuffix("()") in self.places
        return self.has_policy(name)

    def defines(self, path, member):
        """Whether a file has a function, a field, a variant or a constant of this name."""
        word = re.escape(member)
        pattern = rf"\b(?:fn|const|type)\s+{word}\b|^\s+(?:pub(?:\(\w+\))? )?{word}(?::|,|\(| =| \{{)"
        return re.search(pattern, self.texts[path], re.MULTILINE) is not None

    def has_policy(self, name):
        policy, _, parameters = name.partition(":")
        words = [policy]
        for parameter in filter(None, parameters.split(",")):
            words += (word for word in parameter.split("=") if not word[:1].isdigit())
        return all(word in self.literals for word in words)


def options(text):
    """The long options of the command that a file defines."""
    for attribute, field in OPTION.findall(text):
        if found := re.search(r'\blong(?: = "([\w-]+)")?', attribute):
            yield found[1] or field.replace("_", "-")


def tables(text):
    """The rows of all tables: the heading above them, the number of the line, and cells by column."""
    heading, columns = "", []
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("## "):
            heading = line.removeprefix("## ")
        row = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.startswith("|"):
            columns = []
        elif not columns:
            columns = row
        elif set(line) - set("|-: "):
            yield heading, number, columns, row


def wrong_row(cells, names, root, folder):
    """What is wrong with a row about a mechanism."""
    state, last = cells["state"], cells["what differs, and why"]
    here = NAMES.findall(cells["here"])
    yield from (f"there is no `{name}`" for name in here if not names.has(name, root))
    if state not in STATES:
        yield f"`{state}` is no state"
    if state in ("as described", "reason") and not here:
        yield "it has no name here"
    if state == "reason" and not any((folder / link).exists() for link in LINK.findall(last)):
        yield "no document is named that gives the reason"
    if state != "as described" and not last:
        yield "it is not said what differs"
    if not NAMES.search(cells["test"]) and cells["test"] != "none":
        yield "there is neither a test nor `none`"


def wrong(text, names, root, folder):
    """What is wrong in the document, with the numbers of lines, and how many rows it has."""
    complaints, counts, summary = [], {}, []
    for heading, number, columns, row in tables(text):
        if columns == SUMMARY:
            summary.append((number, row))
        elif columns == COLUMNS and len(row) == len(COLUMNS):
            cells = dict(zip(COLUMNS, row))
            complaints += ((number, what) for what in wrong_row(cells, names, root, folder))
            for paper in (heading, "all"):
                count = counts.setdefault(paper, dict.fromkeys(SUMMARY[1:], 0))
                count["rows"] += 1
                count["without a test"] += cells["test"] == "none"
                if cells["state"] in STATES:
                    count[cells["state"]] += 1
        elif "mechanism" in columns:
            complaints.append((number, "the row has other columns than " + ", ".join(COLUMNS)))
    said = {row[0]: (number, row[1:]) for number, row in summary}
    for paper, count in counts.items():
        number, row = said.get(paper, (1, []))
        expected = [str(value) for value in count.values()]
        if row != expected:
            complaints.append((number, f"{paper}: the counts are {', '.join(expected)}"))
    complaints += ((number, f"{paper} has no rows") for paper, (number, _) in said.items() if paper not in counts)
    return complaints, counts.get("all", {}).get("rows", 0)


def main(root, document="docs/papers.md"):
    """The complaints about the document, and the number of its rows."""
    paths = sorted((root / "crates").rglob("*.rs"))
    names = Names((str(path.relative_to(root)), path.read_text(encoding="utf-8")) for path in paths)
    path = root / document
    complaints, rows = wrong(path.read_text(encoding="utf-8"), names, root, path.parent)
    return [f"{document}:{number}: {what}" for number, what in complaints], rows
