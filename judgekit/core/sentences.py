"""What an answer is made of: its sentences, the citation marks in it, and whether it declines to answer.

Every function takes any text (lone surrogates, control characters, megabytes without a space) and is linear in its
length: patterns use bounded or possessive repeats.
"""

import re
from collections.abc import Iterator

CITATION = re.compile(
    r"[ \t]?(?:[\[【]\^?\d{1,4}(?:\s?[,;–-]\s?\d{1,4}){0,20}[\]】]|[\[(](?:source|ref|doc)s?\b[^\])\n]{1,200}[\])])",
    re.IGNORECASE,
)
"""A citation mark in the text: `[1]`, `[2, 3]`, `(source: guide.md)`."""
_ABBREVIATIONS = frozenset(
    re.findall(
        r"\S+",
        """approx bzw ca capt cf co col corp dept dr e.g ed eds eg est etc fig figs gen gov i.e ie inc jr lt ltd messrs
        mr mrs ms mt nr op p pp prof rev sen sgt sr st u.k u.s univ usw vol vs z.b jan feb mar apr jun jul aug sep
        sept oct nov dec""",
    )
)
_SENTENCE_END = re.compile(
    r"""[.!?…;。！？｡；।॥؟۔\n\r\u2028\u2029](?:
        (?<=[.!?…])(?<![.!?…]{2})[.!?…]*+["'”’»)\]]*+(?=\s)
        |(?<=;)(?=\s)
        |(?<=[。！？｡；।॥؟۔])[。！？｡；।॥؟۔]*+[”」』）]*+
        |(?<=[\n\r\u2028\u2029])[\n\r\u2028\u2029]*+)""",
    re.VERBOSE,
)
_WORD_BEFORE = re.compile(r"[^\s(\[\"“]+$")


def sentences(text: str) -> Iterator[str]:
    """Pieces of `text`, which they add up to: cut at full stops, semicolons and line ends.

    A stop after an abbreviation or an initial, or inside a number, does not cut.
    """
    start = 0
    for match in _SENTENCE_END.finditer(text):
        if match[0] == "." and _is_abbreviated(text, start, match.start()):
            continue
        yield text[start : match.end()]
        start = match.end()
    if start < len(text):
        yield text[start:]


def _is_abbreviated(text: str, start: int, stop: int) -> bool:
    before = _WORD_BEFORE.search(text[max(start, stop - 12) : stop])
    if before is None:
        return False
    word = before[0]
    if word.lower() == "no":
        return text[stop + 1 : stop + 4].lstrip()[:1].isdecimal()
    return word.lower() in _ABBREVIATIONS or (len(word.rpartition(".")[2]) == 1 and word.isupper() and word != "I")


MAX_LENGTH = 400
"""Longest sentence, in characters, that can decline."""

_SOURCE = r"""(?:(?:notes?|sources?|documents?|documentation|passages?|contexts?|texts?|excerpts?|articles?|snippets?)
    |(?:my|our|your|provided|given|available|retrieved|supplied|search)\s(?:information|data|materials?|files?|records?|pages?|results?))"""
_SAY = r"""(?:say|mention|specify|state|contain|provide|include|give|describe|cover|tell|list|record|hold|explain
    |address|answer|have|show|name|indicate|discuss|reveal)"""
_SAYS = r"""(?:says?|mentions?|specif(?:y|ies)|states?|contains?|provides?|includes?|gives?|describes?|covers?|tells?
    |lists?|explains?|address(?:es)?|answers?|shows?|names?|indicates?|discuss(?:es)?)"""
_SAID = r"""(?:mentioned|stated|specified|provided|given|found|covered|described|included|known|recorded|listed|named
    |discussed|explained|answered|determined|available|written(?:\sdown)?|in|part\sof)"""
_NOT = r"(?:\snot|n't)"
_INFORMATION = r"""(?:no|not\senough|insufficient|not\sany|not\ssufficient)\s(?:\w+\s){0,2}
    (?:information|mention|answer|evidence|context|details?|data)"""
_OTHER_LANGUAGES = r"""(?:^(?:das|dies|es|davon|darüber)\s(?:steht|wird|ist)\s(?:\w+\s){0,3}?nicht\b.{0,40}?\b
            (?:dokument|kontext|quelle|text|unterlage|notiz)
        |^(?:dazu|darüber|hierzu|hierüber)\s(?:habe|finde|liegen|liegt|gibt)\b.{0,40}?\bkeine\b
        |^je\sn'ai\spas\s(?:\w+\s){0,2}?(?:trouvé|cette\sinformation|d'informations?|assez\sd)
        |^(?:les?|ces?)\s(?:contexte|documents?|textes?|sources?|notes?|passages?)\b.{0,30}?
            \bne\s(?:mentionne|précise|contien|indique|di)\w*\spas\b
        |^no\s(?:dispongo|tengo|encuentro)\s(?:\w+\s){0,3}?informaci[oó]n\b
        |^(?:el|los|las?)\s(?:contexto|documentos?|textos?|fuentes?|notas?)\b.{0,30}?
            \bno\s(?:menciona|indica|especifica|contiene|dice)n?\b
        |^non\slo\sso\b|^não\s(?:o\s)?sei\b|^(?:я\s)?не\sзнаю\b
        |(?:文档|文件|上下文|资料|文本|材料).{0,20}(?:无法(?:回答|确定|找到)|没有(?:提到|提及|说明|相关))
        |(?:記載|記述|情報)(?:が|は)(?:ありません|見つかりません|含まれていません))"""
"""The answer is not known or not in the sources, in other languages."""
_OPENING = re.compile(
    r"""^\W*(?:(?:unfortunately|(?:i'm|i\sam)?\s?(?:very\s|so\s)?sorry|(?:i'm|i\sam)\safraid(?:\sthat)?|hm+|well)\b[\s,;:.!]*(?:but\s)?
    |(?:based\son|according\sto|from|as\san)\s[^,.]{1,80},\s)*""",
    re.IGNORECASE | re.VERBOSE,
)
"""What people say before they decline."""
_ONLY_OPENS = re.compile(r"(?:(?:i'm|i am) )?(?:very |so )?sorry|unfortunately|hm+|well", re.IGNORECASE)
_GOES_ON = re.compile(
    r"\b(?:but|however|although|though|except|instead|other\sthan|apart\sfrom|aber|mais|pero)\b|但", re.IGNORECASE
)
_DECLINES = re.compile(
    rf"""^(?:i|we)\s(?:(?:really|simply|just|currently)\s)?(?:
            (?:do{_NOT}|can(?:not|\snot|'t)|could{_NOT}|(?:am|are|was|were)\s(?:not\sable|unable)\sto)\s(?:\w+\s){{0,2}}?
                (?:know|answer|tell|determine|find|locate|help|have\s(?:\w+\s){{0,3}}?(?:information|answer|data|context|idea))
            |(?:can(?:not|\snot|'t)|could{_NOT})\ssay
            |(?:can(?:not|\snot|'t)|(?:am|are)\s(?:not\sable|unable)\sto)\s(?:assist\s(?:you\s)?with\s(?:this|that|your)
                |provide\s(?:an?|that|this|the)\s(?:answer|information))
            |did{_NOT}\sfind\s(?:anything|an?\sanswer|the\sanswer|any\s(?:\w+\s)?(?:information|mention|answer))
            |(?:have|found|find|see)\s(?:no\s(?:idea|clue)|{_INFORMATION}|nothing\s(?:about|on)))\b
        |^(?:\w+\W+){{0,6}}?{_SOURCE}\s(?:\w+\W+){{0,6}}?(?:(?:do|does|did){_NOT}\s(?:\w+\s){{0,2}}?{_SAY}|(?:is|are)\ssilent)\b
        |\b(?:is|are|was|were){_NOT}\s(?:\w+ly\s)?(?:\w+\sin|{_SAID})\b(?:\W+\w+){{0,5}}?\W+{_SOURCE}\b
        |^(?:it|this|that|the\sanswer)\s(?:is|was|has){_NOT}\s(?:been\s)?{_SAID}\W*$
        |^(?:(?:the|this|that|your|it|question|answer|query|which)\s){{0,3}}(?:can(?:not|\snot|'t)|could{_NOT})\sbe\s(?:answered|determined)\b
        |\b(?:can(?:not|\snot|'t)|could{_NOT})\sbe\s(?:\w+\s)?(?:answered|determined|inferred|found|told)\b(?:\W+\w+){{0,5}}?\W+{_SOURCE}\b
        |^(?:none|neither|nothing|no(?:ne)?)\b(?:\W+\w+){{0,4}}?\W+{_SOURCE}\b(?:\W+\w+){{0,3}}?\W+{_SAYS}\b
        |^(?:there\s(?:is|was|are)\s)?{_INFORMATION}\b(?:
            .{{0,120}}?\b(?:{_SOURCE}|to\s(?:answer|determine|say|tell|know))\b
            |\s(?:is\s|was\s)?(?:available|found|provided|(?:about|on|regarding)\s(?:this|that|it))\W*$|\W*$)
        |^(?:the|this|your)\s(?:response|request|prompt|answer|output)\s(?:was|is|has\sbeen)\s(?:filtered|blocked|flagged)\b
            .{{0,80}}?\b(?:content|safety|usage)\s(?:\w+\s)?(?:polic(?:y|ies)|filters?)\b
        |^no\s(?:relevant\s|matching\s)?{_SOURCE}\s(?:(?:is|are|was|were|could\sbe)\s)?(?:found|available|retrieved|provided)\W*$
        |{_OTHER_LANGUAGES}
        |^(?:ich\s)?wei(?:ß|ss)\s(?:es\s|ich\s|das\s|leider\s)*nicht\b|\bkann\s(?:\w+\s){{0,4}}nicht\sbeantwort
        |^je\sne\ssais\spas\b|^no\s(?:lo\s)?sé\b|^no\spuedo\sresponder\b
        |^\W*(?:我|我们)?(?:无法(?:回答|确定)|不知道)|^\W*(?:わかりません|分かりません)""",
    re.IGNORECASE | re.VERBOSE,
)
_DECLINING = (
    *("no", "'t", "unable", "silent", "insufficient", "neither", "filtered", "blocked", "flagged"),
    *("keine", "nicht", "pas"),
)
"""Whatever in ASCII declines by these phrases holds one of these: they are looked for first, which is much quicker."""
_WHOLE = re.compile(
    rf"""(?:(?:i'm|i\sam|we\sare)\s)?not\s(?:sure|certain)|(?:(?:i|we)\shave\s)?no\s(?:idea|clue|answer)|idk|unknown|unanswerable|n/?a|no_answer|out\sof\sscope
        |can(?:not|\snot|'t)\s(?:determine|answer|tell|say)(?:\s(?:this|that|it))?
        |no\s(?:\w+\s)?information(?:\s(?:available|found))?
        |not\s(?:mentioned|stated|specified|given|found|available|provided|known|recorded|answerable)(?:\s(?:in|by|from)\s(?:\w+\s){{0,3}}{_SOURCE})?""",
    re.IGNORECASE | re.VERBOSE,
)
"""Declines only if nothing else is said."""
_ANSWERS_AFTER_ALL = re.compile(
    r"^\W*(?:but|however|nevertheless|nonetheless|that\ssaid|still|even\sso|yet|instead|although|though|maybe|perhaps"
    r"|probably|aber|mais|pero)\b|^\W*但",
    re.IGNORECASE,
)


def abstention_rule(answer: str) -> bool:
    """Whether an answer declines, by the shipped rule.

    Yes if the first sentence says that the answer is not known or not in the sources ("I don't know", "the notes do
    not say", "this cannot be answered from the context"), and no later one begins with "but", "however" or the like. No
    for a blank answer, which says nothing.

    Narrow on purpose, and mostly English, with phrases of other languages and of content filters: an answer that
    declines in other words is not seen, so that an answer hardly ever passes for an abstention. The lexical judge goes
    by the same phrases, so a change of them is a new name of its models. No sentence is read beyond `MAX_LENGTH`.
    Source: in-house; measured in docs/judges.md.
    """
    said = [text for sentence in sentences(CITATION.sub("", answer)) if (text := _plain(sentence))]
    said = [text for text in said if _ONLY_OPENS.fullmatch(text) is None]
    if not said:
        return False
    if len(said) == 1 and _WHOLE.fullmatch(said[0]) is not None:
        return True
    return _declines(said[0]) and not any(map(_ANSWERS_AFTER_ALL.search, said[1:]))


def _plain(sentence: str) -> str:
    """A sentence as it is matched: apostrophes alike, single spaces, without marks at its ends or an apology."""
    text = " ".join(sentence[: MAX_LENGTH + 1].replace("\u2019", "'").split()).strip(" .!?;:,-*\"'()")
    return text[match.end() :] if (match := _OPENING.match(text)) is not None and match.end() < len(text) else text


def _declines(text: str) -> bool:
    if len(text) > MAX_LENGTH or (text.isascii() and not any(map(text.lower().__contains__, _DECLINING))):
        return False
    return _GOES_ON.search(text) is None and _DECLINES.search(text) is not None
