"""The book: docs/SUMMARY.md names every page of docs once, and what pages link to exists, headings included. What docs/from-quinn.md
says the library has is in docs/api.

The pages of docs/results/small, which tests compare, are no part of it. `links` and `anchors` are also for the links that
leave the book, which .ci/mdbook makes addresses of the repository."""

import re

FENCE = re.compile(r"^( *)(```|~~~).*?^\1?\2 *$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`+[^`]*`+")
LINK = re.compile(r"(!?\[(?:[^\[\]]|\[[^\]]*\])*\]\()([^()\s]+)\)")
DEFINED = re.compile(r"^(\[[^\]]+\]: +)(\S+)", re.MULTILINE)
HEADING = re.compile(r"^#+ +(.*?)#* *$", re.MULTILINE)
ADDRESS = re.compile(r"[a-z]+:")
LEFT_OUT = "results/small/"


def without_code(text):
    """A text with blanks in place of its code, so that everything is where it was."""
    def blank(found):
        return re.sub(r"[^\n]", " ", found[0])
    return CODE.sub(blank, FENCE.sub(blank, text))


def links(text):
    """The targets of a text's links, as they are written, and where each begins and ends."""
    bare = without_code(text)
    for pattern in (LINK, DEFINED):
        for found in pattern.finditer(text):
            # Code may be part of what a link says, but a link within code is none.
            if bare[found.start(2):found.end(2)].strip():
                yield found[2], found.start(2), found.end(2)


def anchors(text):
    """What a `#` may name on a page: its headings, as GitHub and mdBook write them."""
    seen = {}
    for found in HEADING.finditer(FENCE.sub("", text)):
        said = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", found[1])
        name = re.sub(r"[^\w -]", "", said.lower()).strip().replace(" ", "-")
        count = seen[name] = seen.get(name, -1) + 1
        yield f"{name}-{count}" if count else name


def broken(root, page, text):
    """The links of a page that lead nowhere. Those of the web are taken as they are."""
    for target, _, _ in links(text):
        if ADDRESS.match(target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        name = page.relative_to(root)
        if not file.exists():
            yield f"{name}: there is no {target}"
        elif anchor and file.suffix == ".md" and anchor not in anchors(file.read_text(encoding="utf-8")):
            yield f"{name}: {path or 'the page'} has no heading #{anchor}"


def summary(root):
    """What the table of contents lacks, or has more than once."""
    docs = root / "docs"
    text = (docs / "SUMMARY.md").read_text(encoding="utf-8")
    named = [target for target, _, _ in links(text)]
    pages = {str(page.relative_to(docs)) for page in docs.rglob("*.md")} - {"SUMMARY.md"}
    for page in sorted(pages - set(named)):
        if not page.startswith(LEFT_OUT):
            yield f"docs/SUMMARY.md does not name {page}"
    for target in sorted({target for target in named if named.count(target) > 1}):
        yield f"docs/SUMMARY.md names {target} more than once"


def interface(root):
    """The types and functions that docs/api lists, by the last two parts of their paths."""
    for page in (root / "docs/api").glob("*.txt"):
        for path in re.findall(r"^(?:required )?\w+ ([\w:]+)", page.read_text(encoding="utf-8"), re.MULTILINE):
            yield "::".join(path.split("::")[-2:])


def unknown(text, known):
    """The names in a table's column `Sutura` that the libraries do not have, with their lines."""
    column = None
    for number, line in enumerate(text.splitlines(), 1):
        row = [cell.strip() for cell in line.split("|")]
        if not line.startswith("|"):
            column = None
        elif column is None:
            column = row.index("Sutura") if "Sutura" in row else -1
        elif column > 0:
            for name in re.findall(r"`(\w+::\w+)`", row[column]):
                if name not in known:
                    yield f"{number}: there is no `{name}`"


def main(root, pages):
    """Complaints, and how many links were looked at. `pages` are those whose links are."""
    complaints, count = list(summary(root)), 0
    for page in pages:
        text = page.read_text(encoding="utf-8")
        count += sum(1 for _ in links(text))
        complaints += broken(root, page, text)
    guide = "docs/from-quinn.md"
    named = unknown((root / guide).read_text(encoding="utf-8"), set(interface(root)))
    return complaints + [f"{guide}:{complaint}" for complaint in named], count
