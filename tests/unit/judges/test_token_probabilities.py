"""From tokens and their alternatives to the probability of each option of a verdict."""

import math

import pytest

from judgekit.core.token_runs import OptionProbabilities, Token, TokenRun
from judgekit.judges.token_probabilities import (
    ProbabilityError,
    deciding_place,
    deciding_tokens,
    stated_probabilities,
    token_probabilities,
)

SCALE = ("0", "1", "2", "3", "4", "5")


def token(text: str) -> Token:
    """A token that nothing else could have stood for."""
    return given(text, {text: 1.0})


def given(text: str, shares: dict[str, float]) -> Token:
    """A token and the probabilities of what could have come in its place."""
    return Token(text, tuple((other, math.log(share)) for other, share in shares.items()))


def run(*tokens: Token) -> TokenRun:
    return TokenRun(tokens)


def read(
    tokens: TokenRun, options: tuple[str, ...], key: str = "score", text: str | None = None
) -> OptionProbabilities:
    text = "".join(item.text for item in tokens.tokens) if text is None else text
    place = deciding_place(text, text[text.index("{") : text.rindex("}") + 1], key)
    kept = deciding_tokens(tokens, text, place)
    again = deciding_tokens(kept, text, place)
    assert again == kept, "what is kept is enough to read it again"
    return token_probabilities(kept, text, place, options)


@pytest.mark.parametrize(
    ("before", "shares", "after"),
    [
        ('{"score": ', {"4": 0.6, "5": 0.3, "3": 0.1}, "}"),
        ('{"score":', {" 4": 0.6, " 5": 0.2, "5": 0.1, " 3": 0.1}, "}"),
        ('{"score": ', {'"4': 0.6, '"5': 0.3, '"3': 0.1}, '"}'),
        ('{"score": ', {"4}": 0.6, "5}": 0.3, "3}": 0.06, "3": 0.04}, ""),
        ('{"score', {'": 4': 0.6, '": 5': 0.3, '": 3': 0.1}, "}"),
        ('{"score": "', {"4": 0.6, "5": 0.3, "3": 0.1}, '"}'),
        ('{"score": ', {"4": 0.6, "5": 0.3, "3": 0.1}, ".0}"),
    ],
)
def test_a_value_is_found_however_the_tokens_cut_it(before: str, shares: dict[str, float], after: str) -> None:
    tokens = [token(before), given(next(iter(shares)), shares), *([token(after)] if after else [])]
    found = read(run(*tokens), SCALE)
    assert found.mass == pytest.approx(1.0)
    assert found.by_option == pytest.approx({"4": 0.6, "5": 0.3, "3": 0.1})


def test_what_goes_to_other_tokens_is_missing_and_not_shared_out() -> None:
    found = read(
        run(token('{"score": '), given("4", {"4": 0.5, "5": 0.25, "seven": 0.1, "4x": 0.05}), token("}")), SCALE
    )
    # 0.5 + 0.25 of 1; the shares are 2/3 and 1/3
    assert found.mass == pytest.approx(0.75)
    assert found.by_option == pytest.approx({"4": 2 / 3, "5": 1 / 3})


def test_labels_with_a_common_beginning_are_told_apart_by_the_token_that_differs() -> None:
    tokens = run(
        token('{"score": "'),
        given("wa", {"wa": 0.8, "cold": 0.1, "w": 0.05}),
        given("rm", {"rm": 0.75, "rn": 0.25}),
        token('"}'),
    )
    found = read(tokens, ("warm", "warn", "cold"))
    # warm 0.8 * 0.75 = 0.6, warn 0.8 * 0.25 = 0.2, cold 0.1; `w` could be either of two
    assert found.mass == pytest.approx(0.9)
    assert found.by_option == pytest.approx({"warm": 0.6 / 0.9, "warn": 0.2 / 0.9, "cold": 0.1 / 0.9})


def test_one_and_ten_are_told_apart_by_what_follows() -> None:
    tokens = run(token('{"score": '), given("1", {"1": 0.7, "2": 0.3}), given("}", {"}": 0.4, "0": 0.6}))
    found = read(tokens, tuple(str(number) for number in range(1, 11)))
    # 1: 0.7 * 0.4, 10: 0.7 * 0.6
    assert found.by_option == pytest.approx({"1": 0.28, "10": 0.42, "2": 0.3})


def test_a_beginning_that_only_one_option_has_is_that_option() -> None:
    found = read(run(token('{"score": '), given("tr", {"tr": 0.6, "f": 0.4}), token("ue}")), ("true", "false"))
    assert found.by_option == pytest.approx({"true": 0.6, "false": 0.4})


def test_case_and_quotes_do_not_make_another_option() -> None:
    tokens = run(token('{"score": '), given("true", {"true": 0.6, "True": 0.1, " False": 0.3}), token("}"))
    found = read(tokens, ("true", "false"))
    assert found.by_option == pytest.approx({"true": 0.7, "false": 0.3})


def test_the_written_option_need_not_be_the_likeliest() -> None:
    tokens = run(token('{"score": '), given("4", {"5": 0.7, "4": 0.2}), token("}"))
    assert read(tokens, SCALE).by_option == pytest.approx({"5": 7 / 9, "4": 2 / 9})


def test_a_fence_and_thinking_that_the_server_took_away_do_not_move_the_verdict() -> None:
    text = '{"score": 4}'
    tokens = run(
        token("<think>3?</think>```json\n"), token('{"score": '), given("4", {"4": 0.9, "3": 0.1}), token("}\n```")
    )
    assert read(tokens, SCALE, text=text).by_option == pytest.approx({"4": 0.9, "3": 0.1})


def test_only_the_tokens_of_the_value_are_kept() -> None:
    text = '{"reasoning": "a", "score": 4}'
    tokens = run(*(token(character) for character in text))
    kept = deciding_tokens(tokens, text, deciding_place(text, text, "score"))
    assert ([item.text for item in kept.tokens], kept.start) == (["4", "}"], text.index("4"))


@pytest.mark.parametrize(
    ("tokens", "text", "flag"),
    [
        (run(), '{"score": 4}', "absent"),
        (run(token("the"), token(" answer")), '{"score": 4}', "misplaced"),  # tokens of something else
        (run(token('{"score": '), token("4")), '{"score": 4, "score_b": 1}', "misplaced"),  # they end too early
        (run(token('{"score": '), token("7"), token("}")), '{"score": 7}', "misplaced"),  # no option
        (run(token('{"score": '), Token("4"), token("}")), '{"score": 4}', "misplaced"),  # a merged character
        (run(token('{"score": '), given("4", {"4": 0.9, "5": 0.4}), token("}")), '{"score": 4}', "invalid"),  # 1.3
        (run(token('{"score": '), Token("4", (("4", 0.5),)), token("}")), '{"score": 4}', "invalid"),  # above 1
        (run(token('{"score": '), Token("4", (("4", math.nan),)), token("}")), '{"score": 4}', "invalid"),
    ],
)
def test_nothing_is_read_out_of_tokens_that_do_not_decide(tokens: TokenRun, text: str, flag: str) -> None:
    with pytest.raises(ProbabilityError) as error:
        read(tokens, SCALE, text=text)
    assert error.value.flag == f"probabilities_{flag}"


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ('{"score": 4} {"score": 4}', '{"score": 4}'),  # which of the two?
        ("{'score': 4}", "{'score': 4}"),  # mended
        ('{"score": "\\u0034"}', '{"score": "\\u0034"}'),
        ('{"reasoning": "score", "x": {"score": 4}}', '{"reasoning": "score", "x": {"score": 4}}'),
    ],
)
def test_a_verdict_that_had_to_be_mended_has_no_certain_place(text: str, source: str) -> None:
    with pytest.raises(ProbabilityError):
        deciding_place(text, source, "score")


def test_the_key_may_be_written_in_another_case() -> None:
    assert deciding_place('x {"Score" : 4}', '{"Score" : 4}', "score") == (13, 14)


def test_stated_probabilities_must_be_of_all_options_and_sum_to_one() -> None:
    whole = OptionProbabilities({"true": 0.699, "false": 0.3}, 0.97)
    found = stated_probabilities(whole, ("true", "false"))
    assert found.by_option == pytest.approx({"true": 0.699 / 0.999, "false": 0.3 / 0.999})
    assert found.mass == 0.97


@pytest.mark.parametrize(
    ("shares", "said"),
    [
        ({"true": 0.4, "false": 0.3}, "sum to 0.700"),
        ({"true": 1.0}, "lack 'false'"),
        ({"true": 0.5, "false": 0.3, "maybe": 0.2}, "are of 3 options instead of 2"),
        ({"true": 1.2, "false": -0.2}, "hold 1.2"),
        ({"true": math.nan, "false": 0.5}, "hold nan"),
    ],
)
def test_stated_probabilities_that_are_none_are_refused(shares: dict[str, float], said: str) -> None:
    with pytest.raises(ProbabilityError, match=said):
        stated_probabilities(OptionProbabilities(shares, 1.0), ("true", "false"))
