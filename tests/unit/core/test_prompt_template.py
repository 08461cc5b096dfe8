"""Prompt templates: compiled, rendered, hashed; hostile text stays data."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.core.errors import ConfigError
from judgekit.core.prompts import PromptTemplate, fence, unfence


def template(user: str = '{{ answer | data("answer") }}\n{{ reply_schema }}', **parts: Any) -> PromptTemplate:
    fields = {"judge": "j", "version": "v1", "system": "Judge.", "user": user, "reply_schema": {"type": "object"}}
    return PromptTemplate(**{**fields, **parts})


@given(
    text=st.text(alphabet=st.characters(codec=None))
    | st.sampled_from(["{{ 1/0 }}", "{% raw %}", "{# x #}", fence("x", "answer")])
)
def test_judged_text_is_never_read_as_a_template_and_comes_back_from_its_fence(text: str) -> None:
    prompt = template()
    system, user = prompt.render({"answer": text})
    assert system == "Judge."
    assert unfence(user) == [("answer", text)]
    assert user.endswith('\n{"type": "object"}')
    assert prompt.render({"answer": text}) == (system, user)


@pytest.mark.parametrize(
    ("user", "said"),
    [
        ("{{ anwser }}", "'anwser' is undefined"),
        ('{{ anwser | data("answer") }}', "'anwser' is undefined"),
        ("{{ answer.missing.deeper }}", "has no attribute 'missing'"),
        ("{{ range(3) }}", "'range' is undefined"),
        ("{{ lipsum() }}", "'lipsum' is undefined"),
        ("{{ answer.__class__.__mro__ }}", "access to attribute '__class__' of 'str' object is unsafe"),
        ("{{ ''.format.__globals__ }}", "unsafe"),
        ("{{ 1 / 0 }}", "division by zero"),
        ("{{ answer | data }}", "missing 1 required positional argument: 'name'"),
        ('{{ answer | data("two words") }}', "expected one word as the name"),
        ('{{ none | data("answer") }}', "NoneType"),
        ("{{ answer + 1 }}", "can only concatenate str"),
    ],
)
def test_a_template_that_cannot_be_rendered_is_a_config_error(user: str, said: str) -> None:
    with pytest.raises(ConfigError, match=r"^prompt j/v1: ") as caught:
        template(user).render({"answer": "text"})
    assert said in str(caught.value)


@pytest.mark.parametrize("part", ["system", "user"])
@pytest.mark.parametrize(
    "text", ["{{ x", "{% if a %}", "{% for %}", "{{ a | nofilter }}", "{% include 'x' %}{% endif %}"]
)
def test_a_syntax_error_is_found_by_the_check(part: str, text: str) -> None:
    with pytest.raises(ConfigError, match=r"^prompt j/v1: "):
        template(**{part: text}).check()


def test_instructions_have_no_variables() -> None:
    with pytest.raises(ConfigError, match="'answer' is undefined"):
        template(system="{{ answer }}").render({"answer": "x"})


def test_the_hash_is_over_what_reaches_the_model_only() -> None:
    first = template().sha256
    assert template(description="other", version="v2").sha256 == first
    assert template(system="Judge!").sha256 != first
    assert template("{{ answer }}").sha256 != first
    assert template(reply_schema={"type": "array"}).sha256 != first
    assert template(reply_schema={"a": 1, "b": 2}).sha256 == template(reply_schema={"b": 2, "a": 1}).sha256
