"""What all figures share: colours, and text that shows a name exactly as it is.

Names come from data files, so no text is ever read as mathtext or TeX: ``cost_$``, ``<b>`` and ``{x}`` appear
as typed. Sizes are in points (1/72 inch), the unit that does not depend on the resolution of the figure.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.colors import LinearSegmentedColormap, to_hex, to_rgb
from matplotlib.font_manager import FontProperties
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from numpy.typing import ArrayLike, NDArray

from lmemtest.core.arrays import Array
from lmemtest.core.rounding import written
from lmemtest.core.words import format_level
from lmemtest.plots._names import SIGNS, label_of, line_end, longest

INK = "#1a1a1a"
MUTED = "#5f5f5f"
FAINT = "#d9d9d9"
NEUTRAL = "#8c8c8c"
ACCENT = "#0072B2"
WARM = "#D55E00"
# Okabe & Ito (2008), without yellow, which is too light for thin lines on white.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#1a1a1a")
# The shape repeats what the colour says, for print without colour; 7 and 8 are coprime: 56 distinct pairs.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p")
SEQUENTIAL = "Blues"
# Told apart in every common colour vision, and in grey, where the dark end is lightness 24 and the other one 58 of 100;
# white is zero.
DIVERGING = LinearSegmentedColormap.from_list(
    "lmemtest_diverging", ["#08306b", "#2166ac", "#92c5de", "#ffffff", "#fdc9a0", "#f4924f", "#e8601c"]
)

# The lightest colour on which white text has a contrast of 4.5 : 1; black has 4.6 : 1 there, and more on lighter ones.
DARK = 1.05 / 4.5 - 0.05
# Hinting makes text up to 5 % wider at one resolution than at another, and up to 9 % below `HINTED` points.
HINTING_SLACK, SMALL_SLACK, HINTED = 1.05, 1.09, 7.5
# Fonts with wide coverage, tried in this order for characters that the default font lacks.
FALLBACK_FONTS = (
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Noto Sans SC",
    "Noto Sans JP",
    "Source Han Sans SC",
    "Source Han Sans",
    "Hiragino Sans",
    "PingFang SC",
    "Microsoft YaHei",
    "Yu Gothic",
    "Malgun Gothic",
    "WenQuanYi Zen Hei",
    "Droid Sans Fallback",
    "Arial Unicode MS",
    "Noto Sans Arabic",
    "Noto Sans Devanagari",
    "Noto Sans Symbols2",
)


# Which scores are better, below axes and in brackets.
BETTER = {"minimize": "lower is better", "maximize": "higher is better"}


def colour(index: int) -> str:
    """Return the qualitative colour number `index`."""
    return PALETTE[index % len(PALETTE)]


def marker(index: int) -> str:
    """Return the marker number `index`."""
    return MARKERS[index % len(MARKERS)]


def places(names: Sequence[Any], roster: Sequence[str] = ()) -> dict[Any, int]:
    """Numbers of the colours and markers of `names`: their places in the `roster` of a whole table.

    >>> places(["HB", "RS"]), places(["HB", "RS"], ("BO", "HB", "RS"))
    ({'HB': 0, 'RS': 1}, {'HB': 1, 'RS': 2})
    >>> places([2.0, 10.0], ("1", "2", "10"))
    {2.0: 1, 10.0: 2}
    """
    order = {name: place for place, name in enumerate(dict.fromkeys([*roster, *map(format_level, names)]))}
    return {name: order[format_level(name)] for name in names}


def part(*names: str) -> str:
    """The id (`gid`) of what belongs to an algorithm, or to a pair: a page shows it where these are pointed at.

    Names that are of something else are no harm: a page knows its algorithms.

    Examples
    --------
    >>> part("HB"), part("HB", "RS"), bytes.fromhex("4842").decode()
    ('part-4842', 'part-4842.5253', 'HB')
    """
    return f"part-{'.'.join(name.encode().hex() for name in names)}"


def veil(ax: Axes, corner: tuple[float, float], width: float, height: float, *names: str, **place: Any) -> None:
    """A part that cannot be seen over what belongs to it: a page makes it white where others are pointed at."""
    style: dict[str, Any] = {"facecolor": "white", "alpha": 0.0, "linewidth": 0.0, "zorder": 9, "label": "_veil"}
    gid = part(*names).replace("part", "veil", 1)
    ax.add_artist(Rectangle(corner, width, height, gid=gid, **style, **place))


def light(colours: ArrayLike) -> Array:
    """Relative luminance of sRGB colours, 0 to 1, as WCAG 2 defines it; red, green and blue are in the last axis."""
    share = np.asarray(colours, dtype=float)
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    return np.asarray(linear @ np.array((0.2126, 0.7152, 0.0722)))


def as_text(shade: str) -> str:
    """A colour dark enough for text on white: as light as 4.5 : 1 allows, which WCAG 2 asks of text.

    >>> as_text("#0072B2"), as_text("#E69F00")
    ('#0072B2', '#9d6d00')
    """
    share = np.array(to_rgb(shade))
    while 1.05 / (float(light(share)) + 0.05) < 4.5:
        share = 0.99 * share
        shade = to_hex(tuple(share.tolist()))
    return shade


def over_white(shade: Any, opacity: float) -> Array:
    """The colour that is seen where `shade` lies on white."""
    return np.asarray(1.0 - opacity * (1.0 - np.array(to_rgb(shade))))


def ink_on(grounds: ArrayLike) -> NDArray[np.str_]:
    """White where it has the contrast of 4.5 : 1 that WCAG 2 asks of text on these colours; black has it elsewhere.

    >>> ink_on([(0.0, 0.0, 0.5), (1.0, 0.6, 0.3)]).tolist()
    ['white', 'black']
    """
    return np.where(light(grounds) <= DARK, "white", "black")


def base_font() -> float:
    """Return the label size in points: slightly below the user's ``font.size``."""
    return 0.9 * float(mpl.rcParams["font.size"])


def text_style(size: float, **style: Any) -> dict[str, Any]:
    """Return the keywords of a text that is shown literally."""
    return {"fontsize": size, "parse_math": False, "usetex": False, "color": INK} | style


def literal(text: Text) -> Text:
    """Make an existing text (a tick label, a legend entry) show its string literally."""
    text.set_parse_math(False)
    text.set_usetex(False)
    return text


def one_line(name: object) -> str:
    """Return `name`, or its label, on one line, with every character that no font can draw written as its code.

    >>> one_line("a\\n b"), one_line(""), one_line("tab\\x07")
    ('a b', '""', 'tab<U+0007>')
    """
    words = " ".join(label_of(name).split())
    return "".join(_drawable(char) for char in words) or '""'


def _drawable(char: str) -> str:
    if " " <= char <= "~" or (char.isprintable() and _families(char)):
        return char
    return f"<U+{ord(char):04X}>"


@lru_cache(maxsize=4096)
def _families(char: str, families: tuple[str, ...] | None = None) -> tuple[str, ...]:
    """Fonts that can draw `char`: the default first, else a fallback; empty if none can."""
    default = _font_path(None)
    if _has_glyph(default, char):
        return ("default",)
    installed = set(font_manager.get_font_names())
    for family in families or FALLBACK_FONTS:
        if family in installed and _has_glyph(_font_path(family), char):
            return (family,)
    return ()


def _font_path(family: str | None) -> str:
    return str(font_manager.findfont(FontProperties(family=family) if family else FontProperties()))


def _has_glyph(path: str, char: str) -> bool:
    return bool(font_manager.get_font(path).get_char_index(ord(char)))


def font_for(names: Sequence[str]) -> dict[str, Any]:
    """Return the font keywords that cover all characters of `names`; empty where the default font does."""
    extra = {family for name in names for char in name if not char.isascii() for family in _families(char)}
    extra.discard("default")
    if not extra:
        return {}
    return {"fontfamily": [*mpl.rcParams["font.family"], *sorted(extra)]}


# Letters that fonts join (ffi), and single characters: the width of a line is the sum of what each adds to the next.
_UNITS = re.compile("f[fijl]+|.", re.DOTALL)
# Latin, Greek, Cyrillic, punctuation and symbols, without marks that are drawn over others.
_SIMPLE = re.compile(
    "[\x20-\x7e\xa0-\xac\xae-\u02ff\u0370-\u0482\u048a-\u052f\u2010-\u2027\u2030-\u205e\u20a0-\u23ff]*"
)

# Where lines may end: not beside a sign between two words, and not between a number and its per cent.
_SPACES = re.compile(r"(?<! [=<>≤≥]) (?![=<>≤≥] |%)")
# Chinese, Japanese, Korean: one glyph a character, of the font that has it.
_WIDE = re.compile("[\u2e80-\u9fff\uac00-\ud7a3\uff00-\uffef]")


@lru_cache(maxsize=256)
def _measured(*font: object) -> dict[tuple[str, ...], float]:  # noqa: ARG001 - the key of the cache
    """What has been measured in pixels with one font, size and resolution."""
    return {}


@lru_cache(maxsize=16)
def _agg_at(dpi: float) -> RendererAgg:
    return RendererAgg(1, 1, dpi)


class Ruler:
    """Measures texts of one font size as Agg will draw them at the resolution of the figure.

    Lines of simple scripts are summed from pairs of neighbours, each laid out once per font and size: within 0.5 % and
    a pixel of the layout of the whole line, and a hundred times faster. Others are laid out.

    Parameters
    ----------
    ax : Axes
        Any axes of the figure.
    size : float
        Font size in points.
    """

    def __init__(self, ax: Axes, size: float, **style: Any) -> None:
        self._figure = ax.figure.figure  # the root: a SubFigure has no renderer of its own
        self._style = style
        self._font = font_manager.FontProperties(
            family=style.get("fontfamily"), weight=style.get("fontweight"), style=style.get("fontstyle"), size=size
        )
        self._agg = _agg_at(self._figure.dpi)
        path = font_manager.findfont(self._font)
        names = tuple(self._font.get_family()), self._font.get_weight(), mpl.rcParams["text.hinting"]
        self._known = _measured(path, *names, size, self._figure.dpi)
        self._summed: dict[str, float] = {}
        self.slack = SMALL_SLACK if size < HINTED else HINTING_SLACK
        self.size = size

    def width(self, text: str) -> float:
        """Return the width of `text` in points, with slack for other resolutions."""
        return self.slack * max(map(self._pixels, text.split("\n"))) * 72 / self._figure.dpi

    def characters(self, text: str) -> list[float] | None:
        """About what each character of a simple line adds to its width, in points; None where only a layout says."""
        if not text.isascii():
            return None
        return [self.slack * self._step(*pair) * 72 / self._figure.dpi for pair in pairwise([*text, ""])]

    def _pixels(self, line: str) -> float:
        narrow = _WIDE.sub("", line)
        if not narrow.isascii() and not (_SIMPLE.fullmatch(narrow) and font_for([narrow]) == {}):
            return self._laid_out(line)
        if line not in self._summed:
            units = _UNITS.findall(line)
            self._summed[line] = math.fsum(map(self._step, units, [*units[1:], ""]))
        return self._summed[line]

    def _step(self, unit: str, following: str) -> float:
        """What a unit adds to the width of the line in front of another one, kerning included."""
        step = self._known.get((unit, following))
        if step is None:
            step = self._laid_out(unit + following) - (self._laid_out(following) if following else 0.0)
            self._known[unit, following] = step
        return step

    def _laid_out(self, line: str) -> float:
        if (line,) not in self._known:
            font = self._font.copy()
            font.set_family(font_for([line]).get("fontfamily", self._font.get_family()))
            self._known[line,] = self._agg.get_text_width_height_descent(line, font, False)[0] if line else 0.0
        return self._known[line,]

    def height(self, text: str) -> float:
        """Return the height of `text`, of one line or more, in points; 0 for none."""
        probe = Text(0, 0, text, **text_style(self.size, **self._style))
        probe.set_figure(self._figure)
        pixels = probe.get_window_extent().height if text else 0.0
        return self.slack * pixels * 72 / self._figure.dpi

    def widest(self, texts: Sequence[str]) -> float:
        """Return the width of the widest of `texts` in points, 0 for none."""
        return max((self.width(text) for text in texts), default=0.0)


def wrap(words: str, room: float, ruler: Ruler, lead: str = "") -> list[str]:
    """Break a sentence at its plain spaces into lines of at most `room` points; a longer word, after its signs.

    The first line, which stands after a `lead`, is shorter. What an equality says is on one line: ``n = 20``.
    """
    lines = [""]
    for word in _SPACES.split(words):
        before = f"{lines[-1]} ".lstrip()
        taken = room - ruler.width(lead + before) if len(lines) == 1 else room - ruler.width(before)
        if ruler.width(word) > room:  # a long name in a script without spaces, say, begins on this line
            first = line_end(word, longest(word, taken, ruler))
            good = word[first - 1] in SIGNS or _WIDE.search(word)
            if before and good and first > word.find("\u00a0") + 1:  # not a number alone
                lines[-1] = before + word[:first]
                word = word[first:]
            elif not before:
                lines.pop()
            while (first := longest(word, room if lines else taken, ruler)) < len(word):
                first = max(line_end(word, first), 1)
                lines.append(word[:first])
                word = word[first:]
            lines.append(word)
        elif ruler.width(word) <= taken or not before:
            lines[-1] = before + word
        else:
            lines.append(word)
    return [text for line in lines if (text := line.strip(" "))]


def nobreak(text: str) -> str:
    """Return `text` with spaces that `wrap` does not break."""
    return text.replace(" ", "\u00a0")


_FAR = 1000.0


def interval(low: float, high: float) -> str:
    """Return a range of positive numbers with equal decimals: two significant digits of the smaller one.

    >>> interval(0.1234, 1.5), interval(0.1201, 0.1202), interval(0.0, 12345.0), interval(0.573, 27186.5)
    ('0.12–1.50', '0.12', '0–12345', '0.57–27187')
    """
    places = decimals(low, 2) if high < 1e6 else None
    far = high >= _FAR * low > 0.0  # then decimals of the smaller one say nothing of the larger one
    texts = [fixed(low, places), fixed(high, decimals(high, 3) if far else places)]
    return texts[0] if texts[0] == texts[1] else "–".join(texts)


def decimals(value: float, digits: int) -> int | None:
    """Return the decimals that show `digits` significant digits of `value`; None if it needs an exponent.

    >>> decimals(0.0123, 3), decimals(45.6, 3), decimals(0.0, 3), decimals(1e9, 3)
    (4, 1, 0, None)
    """
    if value == 0:
        return 0
    exponent = math.floor(math.log10(abs(value)))
    return max(digits - 1 - exponent, 0) if -4 <= exponent <= 5 else None


def fixed(value: float, places: int | None) -> str:
    """Return `value` with a number of decimals, or two significant digits and an exponent.

    >>> fixed(-0.126, 2), fixed(-0.001, 2), fixed(3e9, None), fixed(float("nan"), 2)
    ('−0.13', '0.00', '3e9', '–')
    """
    if not math.isfinite(value):
        return "–"
    if places is None:
        return _tidy(written(float(value), ".2g"))
    return _tidy(written(float(value), f".{places}f"))


def _tidy(digits: str) -> str:
    mantissa, mark, exponent = digits.partition("e")
    return (mantissa + (f"e{int(exponent)}" if mark else "")).replace("-", "−")


def tick_labels(ticks: Sequence[float]) -> list[str]:
    """Return labels with equal decimals, just enough of them to tell the ticks apart.

    >>> tick_labels([0.0, 0.5, 1.0]), tick_labels([-10.0, 0.0, 10.0]), tick_labels([0.0, 2e8])
    (['0.0', '0.5', '1.0'], ['−10', '0', '10'], ['0', '2e8'])
    """
    ticks = [float(tick) for tick in ticks]
    step = min((b - a for a, b in pairwise(ticks)), default=1.0) or 1.0
    fixed = _shortest(ticks, step, [f".{decimals}f" for decimals in range(17)])
    general = _shortest(ticks, step, [f".{digits}g" for digits in range(1, 18)])
    longest = [max(map(len, labels)) for labels in (fixed, general)]
    return fixed if longest[0] <= max(longest[1], 6) else general


def _shortest(ticks: Sequence[float], step: float, formats: Sequence[str]) -> list[str]:
    """Return the labels of the first format that tells the ticks apart."""
    for form in formats:
        texts = [format(tick + 0.0, form) for tick in ticks]  # + 0.0 turns a negative zero into zero
        if all(abs(float(text) - tick) < 1e-3 * step for text, tick in zip(texts, ticks, strict=True)):
            break
    return [_tidy(text) for text in texts]
