"""Whether numbers in documents are those of the sources and of the pages that commands make. The head of
`documents` says what is compared."""

import ast
import pathlib
import re
import sys

DIGITS = r"(?<![\w.,])\d+(?:,\d{3})*(?:\.\d+)?"
NUMBER = re.compile(DIGITS + r"(?![.,]?\d)")
UNITS = {
    "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30,
    "thousand": 1000, "million": 1_000_000, "billion": 1_000_000_000,
}
BOUND = re.compile(rf"({DIGITS})(?: ({'|'.join(UNITS)})\b)?")
CONSTANT = re.compile(r"\bconst (\w+): ([^=;]+?) =\s*([^;]+);")
ARRAY = re.compile(r"\bconst (\w+): \[[^;\]]+; (\d+)\] =")
# A constant and its value in a sentence: "`MAX_ENCODER_BYTES`, 8 MiB", "1,024 wait (`MAX_BACKLOG`)".
UNIT = rf"(?: ({'|'.join(UNITS)})\b)?"
NAMED = re.compile(rf"`([A-Z]\w*_[A-Z_\d]+)`(?:,|:| is| of) ({DIGITS}){UNIT}")
IN_PARENTHESES = re.compile(rf"({DIGITS}){UNIT}(?: [a-z]+)?\s\(`([A-Z]\w*_[A-Z_\d]+)`\)")
MARK = re.compile(r"(?<!`)<!-- from (\S+): ([^>]*?) -->", re.DOTALL)
# How far a bound may be from what is said of it: 65,539 bytes are 64 KiB.
TOLERANCE = 0.001


class Sources:
    """The constants and the defaults of configurations in the sources."""

    def __init__(self, texts):
        """`texts` are paths and their contents."""
        self.texts = {path: cut_tests(text) for path, text in texts}

    def value(self, name, near, seen=()):
        """The values of a constant, an option of the command or a field of a configuration, which is looked
        for first in the files and folders of `near`. None if it has no number."""
        for place in (*near, ""):
            found = {self.evaluated(text, path) for path, text in self.definitions(name) if under(path, place)}
            found.discard(None)
            if found:
                return found
        return None

    def definitions(self, name):
        """Everything that defines `name`, with its file."""
        option = name.removeprefix("--").replace("-", "_") if name.startswith("--") else None
        for path, text in self.texts.items():
            if option:
                pattern = rf'default_value(?:_t)? = "?(\w+)"?[^;{{}}]*?\b{option}:'
                yield from ((path, found[1]) for found in re.finditer(pattern, text))
            elif name.islower():
                pattern = rf"^ +{name}: ([^,;]+),$"
                yield from ((path, found[1]) for found in re.finditer(pattern, text, re.MULTILINE))
            else:
                yield from ((path, found[3]) for found in CONSTANT.finditer(text) if found[1] == name)
                yield from ((path, found[2]) for found in ARRAY.finditer(text) if found[1] == name)

    def evaluated(self, text, path, depth=4):
        """An expression of numbers and other constants as a number; None if it is something else."""
        text = re.sub(r"\bSome\((.*)\)|Duration::from_secs\((.*)\)", lambda f: f[1] or f[2], text)
        text = re.sub(r" as \w+|(?<=[\da-f])_(?:[ui](?:8|16|32|64|size))\b", "", text.strip())
        for name in set(re.findall(r"\b[A-Z][A-Z_]+\b", text)):
            values = self.named(name, path, depth - 1) if depth else None
            if values is None:
                return None
            text = re.sub(rf"\b{name}\b", str(values), text)
        return number(text)

    def named(self, name, path, depth):
        """The value of a constant that another one, in `path`, uses."""
        found = [(self.evaluated(text, at, depth), at) for at, text in self.definitions(name)]
        here = [value for value, at in found if value is not None and at == path]
        anywhere = here or [value for value, _ in found if value is not None]
        return anywhere[0] if anywhere else None


def number(text):
    """The value of an expression of whole numbers, as Rust writes them."""
    operations = {ast.Add: lambda a, b: a + b, ast.Mult: lambda a, b: a * b, ast.LShift: lambda a, b: a << b,
                  ast.Sub: lambda a, b: a - b}

    def value(node):
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return node.value
        if isinstance(node, ast.BinOp) and type(node.op) in operations:
            return operations[type(node.op)](value(node.left), value(node.right))
        raise ValueError(text)

    try:
        return value(ast.parse(text, mode="eval").body)
    except (SyntaxError, ValueError):
        return None


def cut_tests(text):
    """A source without the tests at its end."""
    return re.split(r"#\[cfg\(test\)\]\n(?:pub\S* )?mod \w+ \{", text)[0]


def under(path, place):
    """Whether a file is one that a document names without the first folders, or in such a folder."""
    return not place or f"/{path}".find(f"/{place}") >= 0


def bounds(text):
    """The cells of the columns "bound" and "where", with the numbers of their lines."""
    columns = []
    for line_number, line in enumerate(text.splitlines(), 1):
        row = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.startswith("|"):
            columns = []
        elif not columns:
            columns = row
        elif not set(line) <= set("|-: ") and {"bound", "where"} <= set(columns):
            cells = dict(zip(columns, row))
            yield line_number, cells["bound"], cells["where"]


def said_in(cell):
    """The numbers of a bound, in bytes, seconds or pieces."""
    plain = re.sub(r"`[^`]*`", "", cell)
    for found in BOUND.finditer(plain):
        yield float(found[1].replace(",", "")) * UNITS.get(found[2], 1), found[0]


def same(a, b):
    return abs(a - b) <= TOLERANCE * max(abs(a), abs(b))


def wrong_bounds(text, sources):
    """What is wrong with the tables of bounds in a document, and how many numbers were compared."""
    wrong, compared = [], 0
    for line, bound, where in bounds(text):
        names = re.findall(r"`([^`]+)`", where)
        near = [name for name in names if "/" in name] + re.findall(r"in `(\w+)`", where)
        defined = {}
        for name in names:
            word = name.split("::")[-1]
            if "/" not in name and re.fullmatch(r"(--)?[A-Za-z_-]+\d*", word) and (word.isupper() or word.islower()):
                values = sources.value(word, near)
                if values:
                    defined[name] = values
        said = dict((shown, value) for value, shown in said_in(bound))
        for name, values in defined.items():
            compared += 1
            if not any(same(value, other) for value in values for other in said.values()):
                wrong.append((line, f"`{name}` is {sorted(values)}, which the bound does not say: {bound}"))
        for shown, value in said.items():
            compared += 1
            if not any(same(value, other) for values in defined.values() for other in values):
                wrong.append((line, f"{shown} is no value of what is named: {where}"))
    return wrong, compared


def wrong_sentences(text, sources):
    """What is wrong with constants that stand beside a number in a document, and how many there are."""
    found = [(at.start(), at[1], at[2], at[3]) for at in NAMED.finditer(text)]
    found += [(at.start(), at[3], at[1], at[2]) for at in IN_PARENTHESES.finditer(text)]
    wrong, compared = [], 0
    for start, name, digits, unit in found:
        values = sources.value(name, [])
        if not values:
            continue
        compared += 1
        said = float(digits.replace(",", "")) * UNITS.get(unit, 1)
        if not any(same(said, value) for value in values):
            wrong.append((text.count("\n", 0, start) + 1, f"`{name}` is {sorted(values)}, not {digits} {unit or ''}"))
    return wrong, compared


def paragraph_before(text, end):
    """The paragraph, list or table in front of a mark, without other marks."""
    before = re.sub(r"<!--.*?-->\s*", "", text[:end], flags=re.DOTALL).rstrip()
    return before[before.rfind("\n\n") + 1:]


def shows(text, wanted):
    """Whether a number stands in a text, there perhaps with more digits."""
    places = len(wanted.partition(".")[2])
    for found in NUMBER.findall(text):
        plain = found.replace(",", "")
        if len(plain.partition(".")[2]) >= places:
            if f"{float(plain):.{places}f}" == wanted.replace(",", ""):
                return True
    return False


def wrong_marks(text, document, root):
    """What is wrong with the marked numbers of a document, and how many there are."""
    wrong, compared = [], 0
    for mark in MARK.finditer(text):
        where, listed = mark.groups()
        line = text.count("\n", 0, mark.start()) + 1
        prose = paragraph_before(text, mark.start())
        path = (root / document).parent / where
        if not path.is_file():
            wrong.append((line, f"there is no {where}"))
            continue
        source = path.read_text(encoding="utf-8")
        for shown in re.split(r",\s+", listed):
            compared += 1
            if not shows(prose, shown):
                wrong.append((line, f"{shown} is not in the text before the mark"))
            elif not shows(source, shown):
                wrong.append((line, f"{shown} is not in {where}"))
    return wrong, compared


def main(root):
    rust = [path for path in (root / "crates").rglob("*.rs") if not {"tests", "tests.rs"} & set(path.parts)]
    sources = Sources((str(path.relative_to(root)), path.read_text(encoding="utf-8")) for path in rust)
    pages = [*root.glob("*.md"), *root.glob("docs/*.md"), *root.glob("crates/*/README.md")]
    bound_count = mark_count = 0
    complaints = []
    for path in sorted(pages):
        document, text = path.relative_to(root), path.read_text(encoding="utf-8")
        found, compared = wrong_bounds(text, sources)
        said, beside = wrong_sentences(text, sources)
        bound_count += compared + beside
        marks, marked = wrong_marks(text, document, root)
        mark_count += marked
        complaints += [f"{document}:{line}: {what}" for line, what in found + said + marks]
    print("\n".join(complaints), file=sys.stderr)
    # Fewer mean that the checks no longer find what they compare.
    if complaints or bound_count < 150 or mark_count < 20:
        sys.exit(f"{len(complaints)} wrong numbers; {bound_count} of bounds and {mark_count} marked ones compared")
    print(f"{bound_count} numbers of bounds and {mark_count} marked ones are those of their sources")
