"""The word-overlap judge: what it must see, what it must leave alone, and that no text breaks it."""

import time
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.lexical import CORRECTNESS, GROUNDEDNESS, auc
from judgekit.core.sentences import CITATION, sentences
from judgekit.providers import overlap, overlap_words
from judgekit.providers.overlap import assess_correctness, judge_correctness, judge_groundedness, overlap_score
from tests.builders import read_lines
from tests.readers import SHARED

BRIDGE = "The Marlow Bridge was built in 1962 by Harlan Steel. It carries 41,000 vehicles a day."

SUPPORTED = [
    pytest.param("It was built in 1962.", BRIDGE, id="plain"),
    pytest.param("It carries 41000 vehicles a day.", BRIDGE, id="1,000 is 1000"),
    pytest.param("Three of them failed.", "3 of them failed.", id="number words"),
    pytest.param("Sales rose 8 percent.", "Sales rose 8%.", id="percent"),
    pytest.param("It came 2nd in the 1920s.", "It came 2 in the 1920.", id="ordinal and decade endings"),
    pytest.param("It weighs 15kg.", "It weighs 15 kg.", id="unit written together"),
    pytest.param("He signed on 5. January.", "He signed on January 5.", id="order of a date"),
    pytest.param("The items were opened.", "An opened item.", id="inflection"),
    pytest.param("Café Müller is OPEN", "cafe muller is open", id="accents and case"),
    pytest.param("It isn’t open.", "It isn't open.", id="typographic apostrophe"),
    pytest.param("ｆｕｌｌｗｉｄｔｈ １２", "fullwidth 12", id="compatibility characters"),
    pytest.param("Obi's plan passed.", "The plan of Obi passed.", id="possessive name"),
    pytest.param("No, it is closed on Sundays.", "It is closed on Sundays.", id="an answering no is no negation"),
    pytest.param("No increase was seen.", "An increase was not seen.", id="any negator is as good as another"),
    pytest.param("YES IT IS OPEN", "yes it is open", id="capitals throughout mark no names"),
    pytest.param(
        "One of the two old piers cracked badly.", "The two old piers cracked badly.", id="one counts nothing"
    ),
    pytest.param("東京は日本の首都です。", "東京は日本の首都です。", id="Japanese"),
    pytest.param("กรุงเทพเป็นเมืองหลวง", "กรุงเทพเป็นเมืองหลวงของไทย", id="Thai"),
    pytest.param("दिल्ली भारत की राजधानी है।", "भारत की राजधानी दिल्ली है।", id="Hindi, danda ends a claim"),
]

UNSUPPORTED = [
    # 1 of 1 numbers missing
    pytest.param("It was built in 1926.", BRIDGE, 1, "1926", id="wrong number"),
    pytest.param("It was built in 1962 by Marchetti Steel.", BRIDGE, 1, "marchetti", id="1 of 2 names missing"),
    pytest.param("Reported by NASA.", "Reported by ESA.", 1, "nasa", id="acronym at the only place"),
    pytest.param("He left in October.", "He left in November.", 1, "octob", id="month"),
    # Johnson and Johnston begin alike: names are compared whole
    pytest.param("It was led by Johnston.", "It was led by Johnson.", 1, "johnston", id="names that begin alike"),
    pytest.param("Zebras graze peacefully.", BRIDGE, 0, "zebra", id="unrelated"),
    pytest.param("It is not open on Sundays.", "It is open on Sundays.", 1, "contradicts", id="negation added"),
    pytest.param("It is open on Sundays.", "It is not open on Sundays.", 1, "contradicts", id="negation dropped"),
    pytest.param("The shop opens Sundays.", "The shop closes Sundays.", 1, "contradicts", id="opposites"),
    pytest.param("The cable isn't included.", "The box includes the cable.", 1, "contradicts", id="contracted not"),
    # 東京 against 大阪: of the telling pairs 大阪 日本 首都, 1 is missing
    pytest.param("大阪は日本の首都です。", "東京は日本の首都です。", 2, "大阪", id="Japanese name"),
    pytest.param("Anything at all", "", 0, "anyth", id="no context"),
]


@pytest.mark.parametrize(("answer", "context"), SUPPORTED)
def test_same_claim_in_other_writing_is_supported(answer: str, context: str) -> None:
    verdict = judge_groundedness(answer, [context], citations=None)
    assert verdict["unsupported_claims"] == []
    assert verdict["score"] == (5 if overlap_score(answer, [context]) >= 0.95 else 4)


@pytest.mark.parametrize(("answer", "context", "score", "named"), UNSUPPORTED)
def test_claim_that_the_context_lacks_is_named(answer: str, context: str, score: int, named: str) -> None:
    verdict = judge_groundedness(answer, [context], citations=None)
    assert verdict["unsupported_claims"] == [answer]
    assert verdict["score"] == score
    assert named in verdict["reasoning"]


SPLITS = [
    pytest.param("Dr. Who met J. K. Rowling. Both left.", ["Dr. Who met J. K. Rowling.", "Both left."], id="initials"),
    pytest.param("It weighs 3.5 kg. Heavy!", ["It weighs 3.5 kg.", "Heavy!"], id="decimal"),
    pytest.param("See No. 5 there. No. Nothing.", ["See No. 5 there.", "No.", "Nothing."], id="No. before a number"),
    pytest.param("I think so... maybe? Yes", ["I think so...", "maybe?", "Yes"], id="several stops are one"),
    pytest.param('He said "Go." Then left', ['He said "Go."', "Then left"], id="quote after the stop"),
    pytest.param("犬です。猫です！", ["犬です。", "猫です！"], id="CJK stops need no space"),
    pytest.param("open; closed\nshut", ["open;", "closed", "shut"], id="semicolons and lines"),
    pytest.param("a.b.c example.org", ["a.b.c example.org"], id="stops inside words"),
]


@pytest.mark.parametrize(("text", "pieces"), SPLITS)
def test_sentences(text: str, pieces: list[str]) -> None:
    assert [piece.strip() for piece in sentences(text)] == pieces


NUMBERS = [
    ("1,000", "1000"),
    ("1000.0", "1000"),
    ("1,00,000", "100000"),  # Indian grouping
    ("007", "7"),
    ("0", "0"),
    ("3.2.1", "3.2.1"),  # a version is no decimal
    ("9" * 5000, "9" * 5000),  # longer than int() takes
    ("twelve", "12"),
]


@pytest.mark.parametrize(("written", "form"), NUMBERS)
def test_numbers_have_one_form(written: str, form: str) -> None:
    assert [overlap_words.form_of(word) for word in overlap_words.words(overlap_words.fold(written))] == [form]


NOT_SEEN = [
    pytest.param("Twenty-three people came.", "23 people came.", id="compound number words"),
    pytest.param("It cost 2.4 million euros.", "It cost €2,400,000.", id="scale words"),
    pytest.param("He signed in Jan. 1962.", "He signed in January 1962.", id="short months"),
]


@pytest.mark.parametrize(("answer", "context"), NOT_SEEN)
def test_what_the_rules_do_not_see_counts_as_unsupported(answer: str, context: str) -> None:
    assert judge_groundedness(answer, [context], citations=None)["unsupported_claims"] == [answer]


# The answer is fully supported: only what is known of citations differs.
@pytest.mark.parametrize(
    ("answer", "citations", "score"),
    [
        ("It was built in 1962.", 1, 5),
        ("It was built in 1962.", None, 5),  # not reported: costs nothing
        ("It was built in 1962.", 0, 3),  # "citations missing"
        ("It was built in 1962 [1].", 0, 5),  # the mark in the text is a citation
        ("It was built in 1962 (source: bridge.md).", 0, 5),
    ],
)
def test_full_score_needs_citations_where_they_are_reported(answer: str, citations: int | None, score: int) -> None:
    assert judge_groundedness(answer, [BRIDGE], citations=citations)["score"] == score


def test_citation_marks_and_bullets_are_no_part_of_a_claim() -> None:
    verdict = judge_groundedness("1. It was built in 1962 [2, 3].\n2. It carries vehicles【4】.", [BRIDGE], citations=2)
    assert verdict["supported_claims"] == ["It was built in 1962.", "It carries vehicles."]
    assert verdict["score"] == 5


def test_partly_supported_answer_scores_3_and_keeps_claims_in_order() -> None:
    # Supports 1, 1 and 0 (a wrong number), weighed by words 5, 6 and 3: (5 + 6) / 14 = .79, from .75 on and below .9
    verdict = judge_groundedness(
        "It was built in 1962. It carries 41,000 vehicles a day. Built in 1926.", [BRIDGE], citations=1
    )
    assert verdict["supported_claims"] == ["It was built in 1962.", "It carries 41,000 vehicles a day."]
    assert verdict["unsupported_claims"] == ["Built in 1926."]
    assert verdict["score"] == 3


def test_overlap_score_is_the_smallest_share_of_words_numbers_and_names() -> None:
    # "bridge" 1, "was" .25, "built" 1, "1962" 1, "1926" missing 1, "in"/"and" .25: words 3.5 of 4.75 (no "and" in the
    # context either); numbers 1 of 2; names none. The smallest is the numbers' 0.5.
    assert overlap_score("Bridge was built in 1962 and 1926", [BRIDGE]) == 0.5
    # all three content words missing, "the" is there: .25 of 3.25
    assert overlap_score("the quick brown fox", [BRIDGE]) == pytest.approx(0.25 / 3.25)


def test_contradiction_halves_support() -> None:
    # All four words are in the context but "not": "it" .25 + "is" .25 + "open" 1 + "sundays" 1 + "on" .25 of 3.0
    assert overlap_score("It is not open on Sundays", ["It is open on Sundays."]) == pytest.approx(2.75 / 3 / 2)


def test_only_the_closest_sentence_can_contradict() -> None:
    contexts = ["Gift cards are not refundable. Opened items are refundable within 14 days."]
    assert judge_groundedness("Opened items are refundable.", contexts, citations=None)["score"] == 5


ABSTENTIONS = [
    "I could not find this in the provided documents.",
    "I don't know.",
    "The context does not mention the price.",
    "There is no information about this in the sources.",
    "Unknown.",
    "Sorry. I am unable to answer that question.",
    "I don’t know.",
    "Ich weiß es nicht.",
    "Je ne sais pas.",
    "我不知道。",
]


@pytest.mark.parametrize("answer", ABSTENTIONS)
def test_abstention_claims_nothing_and_is_grounded(answer: str) -> None:
    verdict = judge_groundedness(answer, [BRIDGE], citations=0)
    assert (verdict["supported_claims"], verdict["unsupported_claims"]) == ([], [])
    assert verdict["score"] == 5
    assert overlap_score(answer, [BRIDGE]) == 1.0


@pytest.mark.parametrize(
    "answer",
    [
        "I could not find the date, but it was built by zebras.",  # goes on to claim
        "I don't know. It was built by zebras.",
        "The survey did not find any zebras.",  # nobody speaks of sources
        "No zebras were provided.",
    ],
)
def test_denial_about_the_world_or_with_more_is_no_abstention(answer: str) -> None:
    assert judge_groundedness(answer, [BRIDGE], citations=None)["unsupported_claims"]


@pytest.mark.parametrize("answer", ["", "  \n", "[1]", "...", "\ud800", "\x00"])
def test_answer_without_words_scores_0(answer: str) -> None:
    assert judge_groundedness(answer, [BRIDGE], citations=None)["score"] == 0
    assert overlap_score(answer, [BRIDGE]) == 0.0


CORRECT = [
    pytest.param("q", "Paris", ["paris"], 5, id="case"),
    pytest.param("q", "It is the city of Paris, in France.", ["Paris, in France"], 5, id="contained"),
    pytest.param("q", "There were 1,200.", ["1200"], 5, id="number"),
    pytest.param("q", "Twelve", ["12", "a dozen eggs"], 5, id="the best reference counts"),
    pytest.param("q", "J. Smith", ["John Smith"], 2, id="1 of 2 words, .9 of F1 .5"),
    pytest.param("q", "virtual reality", ["a virtual reality simulator"], 4, id="F1 .8, times .9 = .72"),
    # key is Paris, since the question gives the rest away: 0 of 1
    pytest.param(
        "capital of France?", "The capital of France is Lyon.", ["The capital of France is Paris."], 0, id="given"
    ),
    pytest.param("q", "Barack Obama", ["Michelle Obama"], 2, id="1 of 2 words, .45"),
    pytest.param("q", "It is not Paris.", ["Paris"], 2, id="negated"),
    pytest.param("q", "Sales decreased by 5%", ["Sales increased by 5%"], 2, id="opposite"),
    pytest.param("q", "in March 2017", ["March 2018"], 2, id="number missing"),
    pytest.param("q", "No, it is closed.", ["Yes"], 0, id="wrong yes or no"),
    pytest.param("q", "No, it is closed.", ["no"], 5, id="right yes or no"),
    pytest.param("q", "Yes, it is.", ["Yes, from 9 to 5"], 0, id="yes without the rest"),
    pytest.param("q", "Yes, it is open.", ["No, it is open later."], 0, id="wrong yes or no with the same words"),
    pytest.param("q", "猫です", ["猫"], 5, id="one character"),
    pytest.param("q", "", ["Paris"], 0, id="blank"),
    pytest.param("q", "I don't know.", ["Paris"], 0, id="abstains although there is an answer"),
    pytest.param("q", "I don't know.", ["The documents do not say."], 5, id="abstains as the reference does"),
    pytest.param("q", "It is 5.", ["The documents do not say."], 0, id="answers where the reference abstains"),
]


@pytest.mark.parametrize(("question", "answer", "references", "score"), CORRECT)
def test_correctness_by_references(question: str, answer: str, references: list[str], score: int) -> None:
    assert judge_correctness(question, answer, [], references)["score"] == score


@pytest.mark.parametrize(
    ("answer", "references", "facts", "score"),
    [
        ("alpha and beta", [], ["alpha", "beta"], 5),
        ("alpha and beta", [], ["alpha", "gamma"], 3),  # (1 + 0) / 2 = .5
        ("alpha and beta", ["beta"], ["alpha", "gamma"], 4),  # (1 + .5) / 2 = .75
        ("alpha", ["", " "], ["alpha"], 5),  # blank references are none
    ],
)
def test_key_facts_are_all_wanted(answer: str, references: list[str], facts: list[str], score: int) -> None:
    assert judge_correctness("q", answer, [], references, facts)["score"] == score


@pytest.mark.parametrize(
    ("question", "answer", "contexts", "score"),
    [
        # support 1, question's words 3 of 3, but 4 is the most without a reference
        ("When was the bridge built?", "The bridge was built in 1962.", [BRIDGE], 4),
        # support 0 (number), question's words 2 of 2: .25
        ("When was the bridge built?", "The bridge was built in 1926.", [BRIDGE], 2),
        # nothing to check by: 2 at most
        ("When was the bridge built?", "The bridge was built in 1962.", [], 2),
        ("When was the bridge built?", "I don't know.", [BRIDGE], 0),  # the context speaks of it
        ("What do zebras eat?", "I don't know.", [BRIDGE], 4),  # the context does not
    ],
)
def test_correctness_without_references_is_capped(question: str, answer: str, contexts: list[str], score: int) -> None:
    assert judge_correctness(question, answer, contexts, [])["score"] == score


def test_strict_judge_differs() -> None:
    # the words in another order: all words found, but of the pairs only some
    shuffled = "vehicles carries day Marlow Bridge built"
    assert judge_groundedness(shuffled, [BRIDGE], citations=None)["score"] == 5
    assert judge_groundedness(shuffled, [BRIDGE], citations=None, strict=True)["score"] < 5
    # contained beside another word: 5 by recall, and F1 .67 in the strict variant
    assert judge_correctness("q", "It is rainy Paris", [], ["Paris"])["score"] == 5
    assert judge_correctness("q", "It is rainy Paris", [], ["Paris"], strict=True)["score"] == 4


def correctness_value(
    question: str,
    answer: str,
    contexts: list[str],
    references: list[str],
    key_facts: Sequence[str] = (),
    *,
    strict: bool = False,
) -> float:
    return assess_correctness(question, answer, contexts, references, key_facts, strict=strict)[0]


VOCABULARY = """the bridge was not built in 1962 and 41,000 Marlow never open closed two hundred Million I find don't
    No. 東京です 3.5 Bn"""
words = st.sampled_from(VOCABULARY.split())
sentence = st.lists(words, min_size=1, max_size=8).map(" ".join)
prose = st.lists(sentence, min_size=1, max_size=6).map(". ".join)
any_text = st.one_of(st.text(), prose, st.text(alphabet=st.characters(codec=None), max_size=30))


@given(answer=any_text, contexts=st.lists(any_text, max_size=4), citations=st.none() | st.integers(0, 3))
def test_any_text_gives_a_verdict_in_range(answer: str, contexts: list[str], citations: int | None) -> None:
    for strict in (False, True):
        verdict = judge_groundedness(answer, contexts, citations=citations, strict=strict)
        assert verdict["score"] in range(6)
        assert 0.0 <= overlap_score(answer, contexts, strict=strict) <= 1.0
        found = verdict["supported_claims"] + verdict["unsupported_claims"]
        claims = [claim.text for claim in overlap.read_claims(answer)[0]]
        assert sorted(found) == sorted(claims)
        assert not (verdict["score"] == 5 and verdict["unsupported_claims"])
        assert not (verdict["score"] == 4 and not verdict["supported_claims"])
        "".join([verdict["reasoning"], *found]).encode()  # can be written, whatever the answer was
        assert verdict == judge_groundedness(answer, contexts, citations=citations, strict=strict)


@given(
    question=any_text, answer=any_text, contexts=st.lists(any_text, max_size=2), known=st.lists(any_text, max_size=3)
)
def test_any_text_gives_a_correctness_in_range(
    question: str, answer: str, contexts: list[str], known: list[str]
) -> None:
    for strict in (False, True):
        verdict = judge_correctness(question, answer, contexts, known[:2], known[2:], strict=strict)
        assert verdict["score"] in range(6)
        assert 0.0 <= correctness_value(question, answer, contexts, known[:2], known[2:], strict=strict) <= 1.0
        assert verdict == judge_correctness(question, answer, contexts, known[:2], known[2:], strict=strict)


@given(contexts=st.lists(any_text, min_size=1, max_size=4), data=st.data())
def test_answer_copied_from_the_context_scores_5(contexts: list[str], data: st.DataObject) -> None:
    answer = data.draw(st.sampled_from(contexts))
    says_something = any(overlap.read_claims(answer))
    assert judge_groundedness(answer, contexts, citations=None)["score"] == (5 if says_something else 0)


@given(answer=any_text)
def test_reference_is_a_correct_answer_to_itself(answer: str) -> None:
    if overlap_words.words(overlap_words.fold(answer)) and CITATION.search(answer) is None:
        assert correctness_value("", answer, [], [answer]) == 1.0
        assert judge_correctness("", answer, [], [answer], strict=True)["score"] == 5


@given(answer=prose, contexts=st.lists(prose, max_size=4))
def test_order_of_contexts_does_not_matter(answer: str, contexts: list[str]) -> None:
    assert overlap_score(answer, contexts) == overlap_score(answer, contexts[::-1])


def seconds(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


@pytest.mark.parametrize(
    "unit",
    [
        "a",
        "a ",
        ". ",
        "...x",
        "[1, ",
        "not x ",
        "東京",
        "1,",
        "two hundred ",
        "He saw it. ",
        "\n",
        "x\u0316\u0301",
        "ุ่",
        "ﷺ",
    ],
)
@pytest.mark.slow
def test_time_grows_in_step_with_length(unit: str) -> None:
    def judge(length: int) -> None:
        text = (unit * length)[:length]
        judge_groundedness(text, [text], citations=0)
        judge_correctness(text[:100], text, [text], [text])

    judge(1000)
    # 16 times the text: a quadratic step would take 256 times as long; a tenth of a second is left for noise
    assert seconds(lambda: judge(40_000)) < 48 * seconds(lambda: judge(2_500)) + 0.1


@pytest.mark.skipif(
    not SHARED.parent.joinpath("groundedness_wice.jsonl").exists(), reason="no ../shared/data beside us"
)
@pytest.mark.parametrize(("name", "at_least"), [("BEGIN", 0.94), ("own40", 0.78), ("WiCE", 0.75), ("NQ301", 0.80)])
def test_agreement_with_people_stays_above_its_floor(name: str, at_least: float) -> None:
    [suite] = [suite for suite in (*GROUNDEDNESS, *CORRECTNESS) if suite.name == name]
    rows = read_lines(SHARED.parent / suite.file)
    assert auc([suite.value(row, False) for row in rows], [suite.label(row) for row in rows]) >= at_least
