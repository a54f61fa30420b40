"""References: one DOI for one work, one spelling for one name, and no shorthand that only the authors understand."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXTS = [
    path
    for pattern in (
        "*.md",
        "docs/*.md",
        "docs/developers/*.md",
        "lmemtest/**/*.py",
        "lmemtest/**/*.md",
        "lmemtest/**/*.j2",
        "examples/*.py",
        "tests/**/*.py",
    )
    for path in sorted(ROOT.glob(pattern))
    if path != Path(__file__)
]

NAME = r"[^\W\d_a-z][\w'-]+(?: [^\W\d_a-z][\w'-]+)?"
CITATION = re.compile(
    rf"(?P<first>[^\W\d_a-z][\w'-]+)(?:, (?P<second>{NAME}))?(?:, {NAME})*(?:,? (?:&|and) (?P<last>{NAME})| et al\.)?"
    r",? \(?(?P<year>(?:19|20)\d\d)\b"
)
DOI = re.compile(r"\b10\.\d{4,5}/[^\s,;\"'`\]]+")
FARTHEST = 300  # characters between the year of a work and its DOI

# Names of cited authors that are easily spelled in another way, as they are written here.
SPELLINGS = ("Demšar", "González", "Mächler", "Mrkvička", "Myllymäki", "Rényi", "Šidák")


def plain(word: str) -> str:
    """Small letters without marks, and without the e that stands for two dots."""
    letters = (c for c in unicodedata.normalize("NFKD", word) if not unicodedata.combining(c))
    return "".join(letters).lower().replace("ae", "a")


def cited(text: str) -> Iterator[tuple[str, str]]:
    """Each DOI of a text with the work before it: first two authors and year."""
    flat = re.sub(r"\s+", " ", text)
    for match in DOI.finditer(flat):
        works = list(CITATION.finditer(flat, max(0, match.start() - FARTHEST), match.start()))
        if works:
            first, second, last, year = works[-1].group("first", "second", "last", "year")
            yield plain(f"{first}, {second or last} ({year})"), match.group().rstrip(".):").lower()


def test_a_work_has_one_doi() -> None:
    dois = defaultdict(set)
    for path in TEXTS:
        for work, doi in cited(path.read_text(encoding="utf-8")):
            dois[work].add(doi)
    assert len(dois) > 80
    assert {work: found for work, found in dois.items() if len(found) > 1} == {}


def test_a_doi_belongs_to_one_work() -> None:
    works = defaultdict(set)
    for path in TEXTS:
        for work, doi in cited(path.read_text(encoding="utf-8")):
            works[doi].add((work.partition(",")[0], work[-6:]))
    assert {doi: found for doi, found in works.items() if len(found) > 1} == {}


def test_a_name_has_one_spelling() -> None:
    right = {plain(name): name for name in SPELLINGS}
    others = set()
    for path in TEXTS:
        words = set(re.findall(r"\b[^\W\d_a-z][^\W\d_]+", path.read_text(encoding="utf-8")))
        others |= {(word, right[plain(word)]) for word in words if word != right.get(plain(word), word)}
    assert others == set()


def test_papers_are_cited_by_their_authors() -> None:
    numbered = [p.name for p in TEXTS if re.search(r"\bpaper\s+00\d", p.read_text(encoding="utf-8"), re.IGNORECASE)]
    assert numbered == []
