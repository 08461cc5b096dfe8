"""Providers are found by their file, as metrics and judges are; what only wraps a provider is not one to name."""

import pytest

import judgekit.providers
from judgekit.core.components import discover, find
from judgekit.core.errors import ConfigError
from judgekit.core.protocols import Provider
from judgekit.providers.lexical import Lexical


def test_providers_are_found_by_their_file() -> None:
    assert set(discover(judgekit.providers, Provider)) >= {"lexical", "openai_compatible"}
    assert find(judgekit.providers, Provider, "lexical", "models.m.provider") is Lexical


@pytest.mark.parametrize(("name", "said"), [("lexicl", "; did you mean 'lexical'"), ("retrying", "")])
def test_another_name_is_refused_with_the_nearest_one(name: str, said: str) -> None:
    with pytest.raises(ConfigError, match=f"models.m.provider: no provider called '{name}'{said}"):
        find(judgekit.providers, Provider, name, "models.m.provider")
