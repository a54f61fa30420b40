"""The works that a methods paragraph cites: one table, for its references, for those in the text and for BibTeX."""

from __future__ import annotations

from collections.abc import Iterable

from lmemtest.core.tex import tex_text
from lmemtest.core.words import joined
from lmemtest.report.document import Text, Words

# By the key of BibTeX: authors as "Surname, Names", and what a journal or publisher needs to find it.
SOURCES: dict[str, dict[str, str]] = {
    "barr2013": {
        "author": "Barr, Dale J.; Levy, Roger; Scheepers, Christoph; Tily, Harry J.",
        "title": "Random effects structure for confirmatory hypothesis testing: keep it maximal",
        "journal": "Journal of Memory and Language",
        "volume": "68",
        "number": "3",
        "pages": "255-278",
        "year": "2013",
        "doi": "10.1016/j.jml.2012.11.001",
    },
    "bates2015": {
        "author": "Bates, Douglas; Mächler, Martin; Bolker, Ben; Walker, Steve",
        "title": "Fitting linear mixed-effects models using {lme4}",
        "journal": "Journal of Statistical Software",
        "volume": "67",
        "number": "1",
        "pages": "1-48",
        "year": "2015",
        "doi": "10.18637/jss.v067.i01",
    },
    "benjamini1995": {
        "author": "Benjamini, Yoav; Hochberg, Yosef",
        "title": "Controlling the false discovery rate: a practical and powerful approach to multiple testing",
        "journal": "Journal of the Royal Statistical Society: Series B",
        "volume": "57",
        "number": "1",
        "pages": "289-300",
        "year": "1995",
        "doi": "10.1111/j.2517-6161.1995.tb02031.x",
    },
    "holm1979": {
        "author": "Holm, Sture",
        "title": "A simple sequentially rejective multiple test procedure",
        "journal": "Scandinavian Journal of Statistics",
        "volume": "6",
        "number": "2",
        "pages": "65-70",
        "year": "1979",
    },
    "lan1983": {
        "author": "Lan, K. K. Gordon; DeMets, David L.",
        "title": "Discrete sequential boundaries for clinical trials",
        "journal": "Biometrika",
        "volume": "70",
        "number": "3",
        "pages": "659-663",
        "year": "1983",
        "doi": "10.1093/biomet/70.3.659",
    },
    "kenward1997": {
        "author": "Kenward, Michael G.; Roger, James H.",
        "title": "Small sample inference for fixed effects from restricted maximum likelihood",
        "journal": "Biometrics",
        "volume": "53",
        "number": "3",
        "pages": "983-997",
        "year": "1997",
        "doi": "10.2307/2533558",
    },
    "kramer1956": {
        "author": "Kramer, Clyde Young",
        "title": "Extension of multiple range tests to group means with unequal numbers of replications",
        "journal": "Biometrics",
        "volume": "12",
        "number": "3",
        "pages": "307-310",
        "year": "1956",
        "doi": "10.2307/3001469",
    },
    "kuznetsova2017": {
        "author": "Kuznetsova, Alexandra; Brockhoff, Per B.; Christensen, Rune H. B.",
        "title": "{lmerTest} package: tests in linear mixed effects models",
        "journal": "Journal of Statistical Software",
        "volume": "82",
        "number": "13",
        "pages": "1-26",
        "year": "2017",
        "doi": "10.18637/jss.v082.i13",
    },
    "phipson2016": {
        "author": "Phipson, Belinda; Lee, Stanley; Majewski, Ian J.; Alexander, Warren S.; Smyth, Gordon K.",
        "title": "Robust hyperparameter estimation protects against hypervariable genes and improves power to detect "
        "differential expression",
        "journal": "Annals of Applied Statistics",
        "volume": "10",
        "number": "2",
        "pages": "946-963",
        "year": "2016",
        "doi": "10.1214/16-AOAS920",
    },
    "piepho2004": {
        "author": "Piepho, Hans-Peter",
        "title": "An algorithm for a letter-based representation of all-pairwise comparisons",
        "journal": "Journal of Computational and Graphical Statistics",
        "volume": "13",
        "number": "2",
        "pages": "456-466",
        "year": "2004",
        "doi": "10.1198/1061860043515",
    },
    "pinheiro2000": {
        "author": "Pinheiro, José C.; Bates, Douglas M.",
        "title": "Mixed-effects models in {S} and {S-PLUS}",
        "publisher": "Springer",
        "year": "2000",
        "doi": "10.1007/b98882",
    },
    "pustejovsky2018": {
        "author": "Pustejovsky, James E.; Tipton, Elizabeth",
        "title": "Small-sample methods for cluster-robust variance estimation and hypothesis testing in fixed effects "
        "models",
        "journal": "Journal of Business & Economic Statistics",
        "volume": "36",
        "number": "4",
        "pages": "672-683",
        "year": "2018",
        "doi": "10.1080/07350015.2016.1247004",
    },
    "searle1980": {
        "author": "Searle, Shayle R.; Speed, F. Michael; Milliken, George A.",
        "title": "Population marginal means in the linear model: an alternative to least squares means",
        "journal": "The American Statistician",
        "volume": "34",
        "number": "4",
        "pages": "216-221",
        "year": "1980",
        "doi": "10.1080/00031305.1980.10483031",
    },
    "shaffer1986": {
        "author": "Shaffer, Juliet Popper",
        "title": "Modified sequentially rejective multiple test procedures",
        "journal": "Journal of the American Statistical Association",
        "volume": "81",
        "number": "395",
        "pages": "826-831",
        "year": "1986",
        "doi": "10.1080/01621459.1986.10478341",
    },
    "smyth2004": {
        "author": "Smyth, Gordon K.",
        "title": "Linear models and empirical {Bayes} methods for assessing differential expression in microarray "
        "experiments",
        "journal": "Statistical Applications in Genetics and Molecular Biology",
        "volume": "3",
        "number": "1",
        "pages": "Article 3",
        "year": "2004",
        "doi": "10.2202/1544-6115.1027",
    },
}


def _surnames(source: dict[str, str]) -> list[str]:
    return [author.split(",")[0] for author in source["author"].split("; ")]


def in_text(key: str) -> str:
    """A work as a sentence cites it.

    Examples
    --------
    >>> in_text("bates2015"), in_text("kenward1997"), in_text("holm1979")
    ('Bates et al. 2015', 'Kenward & Roger 1997', 'Holm 1979')
    """
    names = _surnames(SOURCES[key])
    return f"{' & '.join(names) if len(names) < 3 else f'{names[0]} et al.'} {SOURCES[key]['year']}"


def reference(key: str) -> Text:
    """A work in a list of references, with a link to its DOI.

    Examples
    --------
    >>> reference("piepho2004")[-1].role
    'link'
    >>> print(reference("kenward1997")[0][-46:])
    maximum likelihood. Biometrics 53(3), 983-997.
    """
    source = SOURCES[key]
    title = source["title"].replace("{", "").replace("}", "")
    where = source.get("publisher") or "{journal} {volume}({number}), {pages}".format_map(source)
    text = f"{joined(_surnames(source), most=9).replace(' and ', ' & ')} ({source['year']}). {title}. {where}."
    doi = source.get("doi")
    return (text, " ", Words(f"doi:{doi}", "link", f"https://doi.org/{doi}")) if doi else (text,)


def bibtex(keys: Iterable[str]) -> str:
    """Entries for BibTeX, in ASCII, by their keys in alphabetical order.

    Examples
    --------
    >>> print(bibtex(["pinheiro2000"]), end="")
    @book{pinheiro2000,
      author = {Pinheiro, Jos{\\'{e}} C. and Bates, Douglas M.},
      title = {Mixed-effects models in {S} and {S-PLUS}},
      publisher = {Springer},
      year = {2000},
      doi = {10.1007/b98882},
    }
    """
    entries = []
    for key in sorted(keys):
        kind = "article" if "journal" in SOURCES[key] else "book"
        fields = [f"  {name} = {{{_bibtex_field(name, value)}}}," for name, value in SOURCES[key].items()]
        entries.append("\n".join([f"@{kind}{{{key},", *fields, "}\n"]))
    return "\n".join(entries)


def _bibtex_field(name: str, value: str) -> str:
    """Braces of titles keep capitals, and those around an accent make one letter of it."""
    if name == "author":
        value = value.replace("; ", " and ")
    if name == "pages":
        value = value.replace("-", "--")
    signs = (char if char.isascii() else f"{{{tex_text(char)}}}" for char in value)
    return "".join(signs).replace("&", r"\&")
