"""What a judge as data may say, and what is wrong with what it may not."""

from typing import Any

import pytest
from pydantic import ValidationError

from judgekit.core.rubric_fields import LONGEST_ASK, Rubric
from judgekit.core.verdict_kinds import Criteria, Labels, Scale, YesNo

ASK = "Is the answer polite?"
TWO = {"on": "fits", "off": "does not"}

WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "a scale of one point": ({"scale": [3, 3]}, "scale: 3 to 3 has no two points"),
    "a scale that is turned round": ({"scale": [5, 1]}, "scale: 5 to 1 has no two points"),
    "a scale that no judge tells apart": ({"scale": [0, 5000]}, "more than 1001 points"),
    "levels off the scale": ({"scale": [1, 5], "levels": {"9": "x"}}, "levels: 9 is off the scale of 1 to 5"),
    "levels without a scale": ({"labels": TWO, "levels": {"1": "x"}}, "levels belong to a scale"),
    "labels that differ by case only": ({"labels": {"On": "x", "on": "y"}}, "'On' and 'on' differ by case only"),
    "labels that differ by width only": ({"labels": {"on": "x", "\uff4f\uff4e": "y"}}, "so replies mix them up"),
    "labels that differ by quotes only": ({"labels": {"on": "x", "'on'": "y"}}, "so replies mix them up"),
    "a label with a mark that is not seen": ({"labels": {"on": "x", "on\u200b": "y"}}, "characters that can be seen"),
    "a label that is another figure": ({"labels": {"cannot_tell": "x", "off": "y"}}, "cannot be a label"),
    "a label that a gate reads as something else": ({"labels": {"coverage": "x", "off": "y"}}, "figure is called so"),
    "a label that ends like another figure": ({"labels": {"on": "x", "on.coverage": "y"}}, "figure is called so"),
    "a label that is another figure's counts": ({"labels": {"Distribution": "x", "off": "y"}}, "figure is called so"),
    "labels of other letters that look alike": ({"labels": {"on": "x", "\u043en": "y"}}, "look alike"),
    "capitals of other letters that look alike": ({"labels": {"HOT": "x", "\u041d\u041e\u0422": "y"}}, "look alike"),
    "a criterion that a gate reads as something else": ({"criteria": {"coverage": "x"}}, "name of another figure"),
    "a criterion that is another figure": ({"criteria": {"expected": "x"}}, "name of another figure"),
    "a level of 25 kB": ({"scale": [1, 5], "levels": {"1": "x" * 25_000}}, "levels.1: expected at most 20000"),
    "a label's text of 25 kB": ({"labels": {"on": "x" * 25_000, "off": "y"}}, "labels.on: expected at most 20000"),
    "a criterion of 25 kB": ({"criteria": {"a": "x" * 25_000}}, "criteria.a: expected at most 20000"),
    "weights beyond all bounds": (
        {"criteria": [{"id": name, "text": "x", "weight": 1e308} for name in "ab"]},
        "less than or equal to 1000000",
    ),
    "one label": ({"labels": {"on": "x"}}, "labels: one label says nothing"),
    "a label with quotes": ({"labels": {'"on"': "x", "off": "y"}}, "cannot be a label"),
    "a label that is an outcome": ({"labels": {"Cannot tell": "x", "off": "y"}}, "cannot be a label"),
    "weights that sum to 0": (
        {"criteria": [{"id": "a", "text": "x", "weight": 1}, {"id": "b", "text": "y", "weight": -1}]},
        "criteria: the weights sum to 0",
    ),
    "a weight of 0": ({"criteria": [{"id": "a", "text": "x", "weight": 0}]}, "'a' has weight 0"),
    "no positive weight": ({"criteria": [{"id": "a", "text": "x", "weight": -1}]}, "no weight is above 0"),
    "criteria ids twice": ({"criteria": [{"id": "a", "text": "x"}, {"id": "A", "text": "y"}]}, "id 'A' comes twice"),
    "no criteria": ({"criteria": {}}, "criteria: there is none"),
    "jinja in the question": ({"ask": "Is {{ answer }} polite?", "scale": [1, 5]}, "{{ answer }} is not filled in"),
    "jinja in a level": ({"scale": [1, 5], "levels": {"1": "{% if x %}"}}, "levels.1: {% if x %} is not filled in"),
    "jinja in a label": ({"labels": {"on": "{{ x }}", "off": "y"}}, "labels.on: {{ x }} is not filled in"),
    "jinja in a criterion": ({"criteria": {"a": "{{ x }}"}}, "criteria.a: {{ x }} is not filled in"),
    "a question of 50 kB": ({"ask": "x" * 50_000, "scale": [1, 5]}, f"at most {LONGEST_ASK} characters"),
    "something that cannot be shown": ({"scale": [1, 5], "sees": ["anwser"]}, "'anwser'; did you mean 'answer'?"),
    "something shown twice": ({"scale": [1, 5], "sees": ["answer", "answer"]}, "listed twice"),
    "a pass above the scale": ({"scale": [1, 5], "pass": 6}, "pass: expected a score above 1 and up to 5, found 6"),
    "a pass that all reach": ({"scale": [1, 5], "pass": 1}, "pass: expected a score above 1"),
    "an unknown label that passes": ({"labels": TWO, "pass": ["onn"]}, "no label called 'onn'; did you mean 'on'?"),
    "labels that all pass": ({"labels": TWO, "pass": ["on", "off"]}, "every label passes"),
    "a share above 1": ({"criteria": {"a": "x"}, "pass": 2}, "expected a share of criteria above 0 and up to 1"),
    "an answer that is neither": ({"yes_no": {"pass": "maybe"}}, "input should be 'yes', 'no'"),
    "two kinds": ({"scale": [1, 5], "yes_no": True}, "scale and yes_no are two kinds of verdict; keep one"),
    "no kind": ({}, "say what a verdict is: scale, yes_no, labels, criteria or preference"),
    "a blank question": ({"ask": " ", "scale": [1, 5]}, "match"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_said(name: str) -> None:
    fields, message = WRONG[name]
    with pytest.raises(ValidationError) as caught:
        Rubric(**{"ask": ASK, **fields})
    assert message in str(caught.value).replace("Input should", "input should")


def test_what_belongs_to_a_question_needs_one() -> None:
    with pytest.raises(ValidationError, match='pass is for a judge of your own; give its question in "ask"'):
        Rubric(passing=4)


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"scale": [1, 5]}, Scale(low=1, high=5)),
        ({"scale": [-2, 2], "pass": 1, "tolerance": 2}, Scale(low=-2, high=2, pass_score=1, tolerance=2)),
        ({"yes_no": True}, YesNo()),
        ({"yes_no": {"pass": "no"}}, YesNo(passing=False)),
        ({"yes_no": True, "pass": "yes", "cannot_tell": True}, YesNo(passing=True, cannot_tell=True)),
        ({"labels": TWO, "pass": "on"}, Labels(labels=("on", "off"), passing=("on",))),
        ({"criteria": "case", "pass": 0.5}, Criteria(pass_share=0.5)),
    ],
)
def test_the_kind_is_what_the_fields_say(fields: dict[str, Any], kind: object) -> None:
    assert Rubric(**{"ask": ASK, **fields}).kind == kind
