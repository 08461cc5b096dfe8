"""Text to comparable words, for the overlap judge: folding, words, and the form in which each is compared.

Every function takes any text (lone surrogates, control characters, megabytes without a space) and is linear in its
length. Word lists are English; other languages lose only what the lists would add.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from itertools import pairwise

PREFIX_LENGTH = 5
"""Letters by which words are compared after stemming: bridges inflections that the stemmer does not know."""


def _each(words_in_a_row: str) -> list[str]:
    return words_in_a_row.split()


_FUNCTION_WORDS = _each("""a about after all also am an and any are as at be because been before being between
    both but by can could d did do does done during each either else even every for from had has have having he
    her here hers him his how however i if in into is it its just ll m may me might more most much must my n nd of
    oh on only onto or other our over own rd re s same shall she should since so some sorry such t th than that
    the their them then there these they this those through thus to too under until up upon us ve very was we well
    were what when where which while who whom whose why will with within would yeah yes yet you your""")
_NEGATORS = _each("cannot neither never no nobody non none nor not nothing nowhere")
NOT = "n.t"
"""The form that stands for every negator; no word has it: `notes` without its ending is `not`."""
_NUMBER_WORDS = _each("""two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
    seventeen eighteen nineteen twenty""")
"""From two on: `one` mostly counts nothing ("one of the")."""
_MONTHS = _each("january february march april may june july august september october november december")
_OPPOSITES = """able unable,above below,accept reject,add remove,after before,agree disagree,allow ban,allow
    forbid,allow prohibit,approve reject,arrive depart,available unavailable,best worst,better worse,buy
    sell,close open,cold hot,confirm deny,decrease increase,disable enable,early late,east west,exclude
    include,export import,fail succeed,failure success,fall rise,false true,fast slow,fell rose,female male,few
    many,fewer more,first last,gain loss,good bad,grow shrink,high low,higher lower,illegal legal,impossible
    possible,inside outside,known unknown,large small,larger smaller,left right,less more,likely unlikely,long
    short,lose win,lost won,major minor,maximum minimum,negative positive,new old,north south,open shut,oppose
    support,optional mandatory,optional required,paid unpaid,private public,reduce increase,safe dangerous,safe
    unsafe,same different,start end,start finish,strong weak,upper lower,with without"""
_UNSPACED = (
    r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    r"\uac00-\ud7a3\U00020000-\U0003ffff"
)
"""Thai, Lao, Burmese, Khmer, kana, Han and Hangul, for a character class."""
_INDIC = r"\u0900-\u0963\u0966-\u0dff"
"""Blocks whose vowel signs belong to words but are outside Python's word characters."""
_WORD = re.compile(rf"\d+(?:[.,]\d+)*|(?:[^\W\d_]|[{_INDIC}{_UNSPACED}])(?:[^\W_]|[{_INDIC}{_UNSPACED}])*(?:'[tT]\b)?")
_WORD_ASCII = re.compile(r"\d+(?:[.,]\d+)*|[a-zA-Z][a-zA-Z0-9]*(?:'[tT]\b)?")
_UNSPACED_RUN = re.compile(f"[{_UNSPACED}]+")
_HIRAGANA = re.compile(r"[\u3041-\u309f]")
"""Writes the grammar of Japanese, while its nouns are mostly in other scripts."""
_ACCENTS = re.compile(r"[\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u1ab0-\u1aff\u1dc0-\u1dff]+")
_ISO_DATE = re.compile(r"\b(\d{4})-(0[1-9]|1[0-2])-(\d\d)\b")
_WORDLESS_RUN = re.compile(r"[^\w\s]{32,}")
"""Only marks and signs. Taken out because normalising a long run of combining marks takes quadratic time."""


class Forms(dict[str, str]):
    """Case-folded word to the form in which it is compared; made for one call and dropped with it."""

    def __init__(self) -> None:
        super().__init__(_COMMON_FORMS)

    def __missing__(self, word: str) -> str:
        if word.isalpha():
            form = _stem(word)[:PREFIX_LENGTH]
        elif word[0].isdecimal():
            form = _number_form(word)
        else:
            form = NOT if word.endswith("n't") else word
        self[word] = form
        return form


def _stem(word: str) -> str:
    """`word` without one English inflection; words of other languages lose a letter or two at most."""
    if len(word) > 4 and word.endswith(("ed", "es", "ly", "er", "ing")):
        word = word[:-3] if word[-1] == "g" else word[: -1 if word.endswith("ies") else -2]
    elif len(word) > 3 and word[-1] == "s" and word[-2] != "s":
        word = word[:-1]
    if len(word) > 3 and word[-1] in ("e", word[-2]):
        return word[:-1]
    return word[:-1] + "i" if len(word) > 3 and word[-1] == "y" else word


def _number_form(word: str) -> str:
    """`1,000` and `1000.0` are `1000`, `007` is `7`; numbers stay text, since int() refuses very long ones."""
    whole, _, fraction = word.replace(",", "").partition(".")
    whole, fraction = whole.lstrip("0") or "0", fraction.rstrip("0")
    return f"{whole}.{fraction}" if fraction else whole


_COMMON_FORMS = {word: _stem(word)[:PREFIX_LENGTH] for word in _FUNCTION_WORDS} | dict.fromkeys(_NEGATORS, NOT)
_LIGHT = frozenset(_COMMON_FORMS.values())
_COMMON_FORMS |= {word: str(value) for value, word in enumerate(_NUMBER_WORDS, 2)}


def _opposites_of() -> Mapping[str, frozenset[str]]:
    forms, table = Forms(), dict[str, frozenset[str]]()
    for pair in _OPPOSITES.split(","):
        one, other = (forms[word] for word in pair.split())
        table[one] = table.get(one, frozenset()) | {other}
        table[other] = table.get(other, frozenset()) | {one}
    return table


OPPOSITES_OF = _opposites_of()
"""Form to the forms that mean its opposite."""


def is_common(word: str) -> bool:
    """Whether a case-folded word is a function word, a negator or a number, and so never a name."""
    return word in _COMMON_FORMS


def content_of(forms: Iterable[str]) -> frozenset[str]:
    """The forms that say which sentence is meant: without function words, negators and pairs with hiragana."""
    return frozenset(form for form in {*forms} - _LIGHT if form.isascii() or not _HIRAGANA.search(form))


def is_unspaced(folded: str) -> bool:
    """Whether the text is all in a script that is written without spaces."""
    return _UNSPACED_RUN.fullmatch(folded) is not None


def fold(text: str) -> str:
    """Compatibility characters, accents, apostrophes and ISO dates folded; case kept, since it marks names."""
    if not text.isascii():
        text = _ACCENTS.sub("", _WORDLESS_RUN.sub(" ", text)).replace("\u2019", "'")
        text = unicodedata.normalize("NFKC", _ACCENTS.sub("", unicodedata.normalize("NFKD", text)))
    return (
        _ISO_DATE.sub(lambda match: f"{match[1]} {_MONTHS[int(match[2]) - 1]} {match[3]}", text)
        if "-" in text
        else text
    )


def words(folded: str) -> list[str]:
    """Words and numbers as written; runs of scripts without spaces as overlapping pairs of characters."""
    if folded.isascii():
        return _WORD_ASCII.findall(folded)
    found: list[str] = []
    for word in _WORD.findall(_UNSPACED_RUN.sub(r" \g<0> ", folded)):
        is_run = len(word) > 2 and _UNSPACED_RUN.match(word)
        found.extend(map("".join, pairwise(word)) if is_run else [word])
    return found
