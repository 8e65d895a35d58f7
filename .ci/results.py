"""The pages of docs/results: what made each, and whether it can make it still.

A page says `Made by `COMMAND`` in its head. The command's program exists, the options are words of its sources, and
every column of a table that is measured is made of words in the strings of those sources, so that a column that was
renamed or dropped is noticed where figures cannot be compared. Pages of experiments in virtual time are compared with
what the program makes, to the byte, at a small size (docs/results/small, by a test)."""

import re
import shlex

MADE_BY = re.compile(r"^Made by (?:`([^`]+)`)", re.MULTILINE)
STRING = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
# What `sutura lab` makes of several experiments.
OF_SEVERAL = {"verdicts"}
# Where the sources of a program are, by the manifest or the script that runs it.
SOURCES = {
    "benches/Cargo.toml": ["benches/src", "crates/analysis/src"],
    "benches/erasure/Cargo.toml": ["benches/erasure", "crates/analysis/src"],
    "benches/half-open/Cargo.toml": ["benches/half-open", "crates/analysis/src"],
    "benches/hostile/Cargo.toml": ["benches/hostile", "crates/analysis/src"],
    "target/release/guard": ["benches/guard", "crates/analysis/src"],
    "interop": ["interop", "crates/analysis/src"],
    "sutura": ["crates/cli/src", "crates/lab/src", "crates/analysis/src"],
}


def program_of(words):
    """The key in SOURCES of a command, the words that are its options, and the experiment if it is one."""
    if "--manifest-path" in words:
        manifest = words[words.index("--manifest-path") + 1]
        return manifest, words[words.index("--manifest-path") + 2:], None
    if words[0].startswith("interop/"):
        return "interop", words[1:], None
    if words[0].endswith("/guard"):
        return "target/release/guard", words[1:], None
    if "sutura-cli" in words and "--" in words:
        words = ["sutura"] + words[words.index("--") + 1:]
    if words[:2] == ["sutura", "lab"]:
        return "sutura", words[3:], words[2]
    return None, [], None


def text_of(root, folders):
    suffixes = {".rs", ".py", ".sh", ".toml"}
    files = (path for folder in folders for path in sorted((root / folder).rglob("*")))
    return "\n".join(path.read_text(encoding="utf-8") for path in files
                     if path.suffix in suffixes and "target" not in path.parts)


def headings(text):
    """The columns of all tables."""
    lines = text.splitlines()
    for line, below in zip(lines, lines[1:]):
        if line.startswith("|") and set(below) <= set("| -:") and "---" in below:
            yield from (cell.strip() for cell in line.strip().strip("|").split("|"))


def words_of(text):
    return re.findall(r"[A-Za-z]+", text)


def complaints_of(root, name, text, experiments, sources):
    found = MADE_BY.search(text)
    if not found:
        yield f"{name}: it does not say what made it"
        return
    words = shlex.split(found[1].replace("\n", " "))
    program, options, experiment = program_of(words)
    if program not in SOURCES:
        yield f"{name}: no such program: {found[1]}"
        return
    if experiment is not None and experiment not in experiments | OF_SEVERAL:
        yield f"{name}: no experiment {experiment}"
    if words[0].startswith("interop/") and not (root / words[0]).is_file():
        yield f"{name}: no script {words[0]}"
    if program not in sources:
        code = text_of(root, SOURCES[program])
        strings = {word for string in STRING.findall(code) for word in words_of(string)}
        sources[program] = (set(re.findall(r"\w+", code)), strings)
    code, strings = sources[program]
    for option in (word for word in options if word.startswith("--") and word != "--"):
        parts = option.strip("-").split("=")[0].split("-")
        if "_".join(parts) not in code and not all(part in code for part in parts):
            yield f"{name}: the program knows no {option}"
    if experiment is None:
        unknown = {word for column in headings(text) for word in words_of(column)} - strings - code
        yield from (f"{name}: no column of the program has the word `{word}`" for word in sorted(unknown))


def main(root):
    """Complaints, and how many pages there are."""
    lab = text_of(root, ["crates/lab/src/experiments"])
    experiments = set(re.findall(r'experiment! \{\s*"([^"]+)"', lab))
    sources, complaints, pages = {}, [], 0
    for path in sorted((root / "docs/results").glob("*.md")):
        pages += 1
        text = path.read_text(encoding="utf-8")
        complaints += complaints_of(root, path.name, text, experiments, sources)
    return complaints, pages
