"""Text to comparable words, for the overlap judge: folding, words, and the form in which each is compared.

Every function takes any text (lone surrogates, control characters, megabytes without a space) and is linear in its
length. Word lists are English; other languages lose only what the lists would add.
"""

import re
import tomllib
import unicodedata
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

LISTS: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
NOT = "n.t"
"""The form of every negator; no word has it: `notes` without its ending is `not`."""
_UNSPACED = (
    r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    r"\uac00-\ud7a3\U00020000-\U0003ffff"
)
"""Thai, Lao, Burmese, Khmer, kana, Han and Hangul, for a character class."""
_INDIC = r"\u0900-\u0963\u0966-\u0dff"
"""Blocks whose vowel signs belong to words but are outside Python's word characters."""
_WORD = re.compile(rf"\d+(?:[.,]\d+)*|(?:[^\W\d_]|[{_INDIC}{_UNSPACED}])(?:[^\W_]|[{_INDIC}{_UNSPACED}])*(?:'[tT]\b)?")
_WORD_ASCII = re.compile(r"(?=[0-9A-Za-z])(?:[a-zA-Z][a-zA-Z0-9]*+(?:'[tT]\b)?+|[0-9]++(?:[.,][0-9]++)*+)")
_DIGIT_OR_APOSTROPHE = re.compile(r"[0-9']")
_LETTERS = {code: " " for code in range(128) if not chr(code).isalpha()}
"""What ends a word of plain letters; a third of the time of the pattern, and most sentences have nothing else."""
UNSPACED_RUN = re.compile(f"[{_UNSPACED}]+")
HIRAGANA = re.compile(r"[\u3041-\u309f]")
"""Writes the grammar of Japanese, while its nouns are mostly in other scripts."""
_ACCENTS = re.compile(r"[\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u1ab0-\u1aff\u1dc0-\u1dff]+")
_ENDING = re.compile(r"(?:(?<=..)ing|(?<=...)(?:ed|ly|er|(?<!i)es|(?<!s)s))\Z")
_FINAL = re.compile(r"(?<=...)(?:e|(?<=(.))\1)\Z")
"""An e, or the second of two equal letters."""
_ISO_DATE = re.compile(r"\b(\d{4})-(0[1-9]|1[0-2])-(\d\d)\b")
_WORDLESS_RUN = re.compile(r"[^\w\s]{32,}")
"""Only marks and signs. Taken out because normalising a long run of combining marks takes quadratic time."""


def _stem(word: str) -> str:
    """`word` without one English inflection, cut to five letters, which bridges those that are not known here."""
    word = _FINAL.sub("", _ENDING.sub("", word))
    return (word[:-1] + "i" if len(word) > 3 and word[-1] == "y" else word)[:5]


COMMON_FORMS = {word: _stem(word) for word in LISTS["function_words"].split()}
COMMON_FORMS |= dict.fromkeys(LISTS["negators"].split(), NOT)
"""Case-folded function words, negators and number words, which are never names, and their forms."""
LIGHT = frozenset(COMMON_FORMS.values())
"""Forms that do not say which sentence is meant: function words and negators."""
COMMON_FORMS |= {word: str(value) for value, word in enumerate(LISTS["numbers"].split(), 2)}


@lru_cache(maxsize=16_384)
def form_of(word: str) -> str:
    """The form in which a word is compared: `1,000` and `1000.0` are `1000`, `007` is `7`."""
    word = word.casefold()
    if word in COMMON_FORMS:
        return COMMON_FORMS[word]
    if word.isalpha():
        return _stem(word)
    if word[0].isdecimal():
        # Numbers stay text, since int() refuses very long ones.
        whole, _, fraction = word.replace(",", "").partition(".")
        whole, fraction = whole.lstrip("0") or "0", fraction.rstrip("0")
        return f"{whole}.{fraction}" if fraction else whole
    return NOT if word.endswith("n't") else word


OPPOSITES_OF: dict[str, set[str]] = {}
"""Form to the forms that mean its opposite."""
for _pair in LISTS["opposites"].split(","):
    _one, _other = map(form_of, _pair.split())
    OPPOSITES_OF.setdefault(_one, set()).add(_other)
    OPPOSITES_OF.setdefault(_other, set()).add(_one)


def fold(text: str) -> str:
    """Compatibility characters, accents, apostrophes and ISO dates folded; case kept, since it marks names."""
    if not text.isascii():
        text = _ACCENTS.sub("", _WORDLESS_RUN.sub(" ", text)).replace("\u2019", "'")
        text = unicodedata.normalize("NFKC", _ACCENTS.sub("", unicodedata.normalize("NFKD", text)))
    months = LISTS["months"].split() if "-" in text else ()
    return _ISO_DATE.sub(lambda match: f"{match[1]} {months[int(match[2]) - 1]} {match[3]}", text) if months else text


def words(folded: str) -> list[str]:
    """Words and numbers as written; runs of scripts without spaces as overlapping pairs of characters."""
    if folded.isascii():
        has_letters_only = _DIGIT_OR_APOSTROPHE.search(folded) is None
        return folded.translate(_LETTERS).split() if has_letters_only else _WORD_ASCII.findall(folded)
    found: list[str] = []
    for word in _WORD.findall(UNSPACED_RUN.sub(r" \g<0> ", folded)):
        is_run = len(word) > 2 and UNSPACED_RUN.match(word)
        found.extend(map("".join, pairwise(word)) if is_run else [word])
    return found
