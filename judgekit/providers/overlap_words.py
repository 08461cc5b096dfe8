"""Text to comparable words, for the overlap judge: folding, tokens, number and word forms.

Every function takes any text (lone surrogates, control characters, megabytes without a space) and is linear in
its length: patterns use bounded or possessive repeats, numbers are handled as text and never as huge integers.
Word lists are English; other languages lose only what the lists would add.
"""

import re
import unicodedata
from itertools import pairwise

PREFIX_LENGTH = 5
"""Letters by which words are compared after stemming: bridges inflections that the stemmer does not know."""


def _each(words_in_a_row: str) -> list[str]:
    return words_in_a_row.split()


FUNCTION_WORDS = frozenset(
    _each("""a about after all also am an and any are as at be because been before being between both but by can could d
    did do does done during each either else even every for from had has have having he her here hers him his how
    however i if in into is it its just ll m may me might more most much must my n of oh on only onto or other our
    over own re s same shall she should since so some such t than that the their them then there these they this
    those through thus to too under until up upon us ve very was we well were what when where which while who whom
    whose why will with within would yeah yes yet you your""")
)
NEGATORS = frozenset(_each("cannot neither never no nobody non none nor not nothing nowhere"))
NOT = "not"
"""The form that stands for every negator."""
_UNITS = {
    word: value
    for value, word in enumerate(
        _each("""zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
        seventeen eighteen nineteen""")
    )
} | {"once": 1, "twice": 2, "thrice": 3, "dozen": 12, "third": 3, "fourth": 4, "fifth": 5}
_TENS = {word: 10 * n for n, word in enumerate(_each("twenty thirty forty fifty sixty seventy eighty ninety"), 2)}
NUMBER_WORDS = _UNITS | _TENS
SCALES = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "bn": 1e9, "trillion": 1e12}
_COMPOUND_MARKERS = frozenset(_TENS) | frozenset(SCALES)
_MONTHS = _each("january february march april may june july august september october november december")
MONTH_WORDS = frozenset(_MONTHS) | {month[:3] for month in _MONTHS} | {"sept"}
_SIGNS = {"%": "percent", "$": "dollar", "€": "euro", "£": "pound", "¥": "yen"}

_UNSPACED = (
    r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    r"\uac00-\ud7a3\U00020000-\U0003ffff"
)
"""Thai, Lao, Burmese, Khmer, kana, Han and Hangul, for a character class."""
_INDIC = r"\u0900-\u0963\u0966-\u0dff"
"""Blocks whose vowel signs belong to words but are outside Python's word characters."""
_DIGITS = r"\d+(?:[.,]\d+)*(?:(?:[kKsS]|[sS][tT]|[nNrR][dD]|[tT][hH])\b)?"
_WORD_ASCII = re.compile(rf"{_DIGITS}|[a-zA-Z][a-zA-Z0-9]*(?:'[tT]\b)?|[%$]")
_WORD = re.compile(rf"{_DIGITS}|(?:[^\W\d]|[{_INDIC}{_UNSPACED}])[\w{_INDIC}{_UNSPACED}]*(?:'[tT]\b)?|[%$€£¥]")
_UNSPACED_RUN = re.compile(f"[{_UNSPACED}]+")
_HIRAGANA = re.compile(r"[\u3041-\u309f]")
"""Writes the grammar of Japanese, while its nouns are mostly in other scripts."""
_ACCENTS = re.compile(r"[\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u1ab0-\u1aff\u1dc0-\u1dff]+")
_WORDLESS_RUN = re.compile(r"[^\w\s]{32,}")
"""Only marks and signs. Taken out because normalising a long run of combining marks takes quadratic time."""
_NUMBER = re.compile(r"(\d+(?:[.,]\d+)*)(k|s|st|nd|rd|th)?")
_ISO_DATE = re.compile(r"\b(\d{4})-(0[1-9]|1[0-2])-(\d\d)\b")


class Forms(dict[str, str]):
    """Word to the form in which it is compared; made for one call and dropped with it."""

    def __init__(self, prefix_length: int | None = PREFIX_LENGTH) -> None:
        super().__init__(_COMMON_FORMS)
        self._prefix_length = prefix_length

    def __missing__(self, word: str) -> str:
        if word.isalpha():
            form = _stem(word)[: self._prefix_length]
        elif word[0].isdecimal():
            form = number_form(word)
        else:
            form = NOT if word.endswith("n't") else word
        self[word] = form
        return form


def _stem(word: str) -> str:
    """`word` without one English inflection; words of other languages lose a letter or two at most."""
    if word[-1] in "gsdyr":
        if len(word) > 4 and word.endswith(("ed", "es", "ly", "er", "ing")):
            word = word[:-3] if word[-1] == "g" else word[: -1 if word.endswith("ies") else -2]
        elif len(word) > 3 and word[-1] == "s" and word[-2] != "s":
            word = word[:-1]
    if len(word) > 3:
        if word[-1] == "e" or word[-1] == word[-2]:
            return word[:-1]
        if word[-1] == "y":
            return word[:-1] + "i"
    return word


def _short_stem(word: str) -> str:
    return _stem(word)[:PREFIX_LENGTH]


_COMMON_FORMS = (
    {word: _short_stem(word) for word in FUNCTION_WORDS}
    | dict.fromkeys(NEGATORS, NOT)
    | {word: str(value) for word, value in NUMBER_WORDS.items()}
    | {written: _short_stem(name) for name in _MONTHS for written in (name, name[:3])}
    | {written: _short_stem(name) for sign, name in _SIGNS.items() for written in (sign, name, f"{name}s")}
    | {"sept": _short_stem("september")}
)
"""Forms that are known beforehand, most words of a text among them: a copy of this is where `Forms` begins."""
LIGHT_FORMS = frozenset(_COMMON_FORMS[word] for word in FUNCTION_WORDS) | {NOT}
"""Forms of function words and negators."""


def is_light(form: str) -> bool:
    """Whether a form weighs less and does not say which sentence is meant: function words, and pairs with hiragana."""
    return form in LIGHT_FORMS or (not form.isascii() and _HIRAGANA.search(form) is not None)


def number_form(word: str) -> str:
    """The canonical text of a number: `1,000` and `1000.0` are `1000`, `2nd` is `2`, `13k` is `13000`."""
    match = _NUMBER.fullmatch(word)
    if match is None:
        return word
    digits, suffix = match.groups()
    if not digits.isascii():
        digits = "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in digits)
    groups = digits.partition(".")[0].split(",")
    if len(groups) > 1 and len(groups[-1]) == 3 and all(2 <= len(group) <= 3 for group in groups[1:]):
        digits = digits.replace(",", "")
    elif digits.count(",") == 1:
        digits = digits.replace(".", "").replace(",", ".")
    if suffix == "k" and is_plain_number(digits):
        return _plain(float(digits) * 1000)
    whole, _, fraction = digits.partition(".")
    whole, fraction = whole.lstrip("0") or "0", fraction.rstrip("0")
    return f"{whole}.{fraction}" if fraction else whole


def is_plain_number(text: str) -> bool:
    """Whether `text` is short enough and of a form that reads as one decimal number."""
    return len(text) < 16 and text.replace(".", "", 1).isdecimal()


def _plain(value: float) -> str:
    return f"{value:.6f}".rstrip("0").rstrip(".")


def fold(text: str) -> str:
    """Compatibility characters, accents, apostrophes and ISO dates folded; case kept, since it marks names."""
    if not text.isascii():
        text = _ACCENTS.sub("", _WORDLESS_RUN.sub(" ", text)).replace("\u2019", "'")
        text = unicodedata.normalize("NFKC", _ACCENTS.sub("", unicodedata.normalize("NFKD", text)))
    if "_" in text:
        text = text.replace("_", " ")
    return _ISO_DATE.sub(_spoken_date, text) if "-" in text else text


def _spoken_date(match: re.Match[str]) -> str:
    return f"{match[1]} {_MONTHS[int(match[2]) - 1]} {match[3]}"


def tokens(folded: str) -> list[str]:
    """Words and numbers as written; runs of unspaced scripts as overlapping pairs of characters."""
    if folded.isascii():
        return _WORD_ASCII.findall(folded)
    if _UNSPACED_RUN.search(folded) is None:
        return _WORD.findall(folded)
    found: list[str] = []
    for token in _WORD.findall(_UNSPACED_RUN.sub(r" \g<0> ", folded)):
        if len(token) > 2 and _UNSPACED_RUN.match(token):
            found.extend(map("".join, pairwise(token)))
        else:
            found.append(token)
    return found


def is_unspaced(folded: str) -> bool:
    """Whether the text is all in a script that is written without spaces."""
    return _UNSPACED_RUN.fullmatch(folded) is not None


def words(folded: str) -> list[str]:
    """Case-folded tokens, with spelled-out numbers such as `two hundred` or `2.4 million` put together."""
    found = tokens(folded.casefold())
    return found if _COMPOUND_MARKERS.isdisjoint(found) else _join_numbers(found)


def _join_numbers(found: list[str]) -> list[str]:
    joined: list[str] = []
    start = 0
    while start < len(found):
        value = _number_value(found[start])
        stop, value = (start + 1, 0.0) if value is None else _read_number(found, start + 1, value)
        joined.append(found[start] if stop == start + 1 else _plain(value))
        start = stop
    return joined


def _read_number(found: list[str], start: int, group: float) -> tuple[int, float]:
    """Where the number that began with `group` ends, and its value: `two hundred and fifty` -> 250."""
    total = 0.0
    while start < len(found):
        at = start + (found[start] == "and")
        word, following = [*found[at : at + 2], "", ""][:2]
        if at == start and group and word in SCALES:
            group *= SCALES[word]
            if SCALES[word] > 100:
                total, group = total + group, 0.0
        elif _goes_on(total, group, word) and (at == start or following not in SCALES):
            group += NUMBER_WORDS[word]
        else:
            break
        start = at + 1
    return start, total + group


def _goes_on(total: float, group: float, word: str) -> bool:
    """Whether a number word continues what was read: `twenty` + `three`, `two hundred` + `fifty`."""
    addend = NUMBER_WORDS.get(word, 0)
    room = 10 if 0 < group < 100 else 100
    return 0 < addend < room and (room <= group or (total > 0 and not group)) and group % room == 0


def _number_value(word: str) -> float | None:
    if word in NUMBER_WORDS:
        return float(NUMBER_WORDS[word])
    form = number_form(word) if word[:1].isdecimal() else ""
    return float(form) if is_plain_number(form) else None
