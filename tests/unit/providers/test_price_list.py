"""What a call costs, and of what day the prices are."""

import re
from datetime import date

import pytest

from judgekit.core.cases import Usage
from judgekit.core.config import ModelConfig
from judgekit.providers.accounting import price_list, price_of


def test_a_known_model_costs_what_its_provider_publishes() -> None:
    price, source = price_of(ModelConfig(model="gpt-4o-2024-08-06")) or (None, None)
    assert price is not None
    assert source == "price_list"
    # 2.50, cached 1.25, and 10.00 USD a million: 600 x 2.5e-6 + 400 x 1.25e-6 + 100 x 10e-6
    usage = Usage(prompt_tokens=1000, cached_tokens=400, completion_tokens=100)
    assert price(usage) == pytest.approx(0.0015 + 0.0005 + 0.001)


def test_models_without_a_published_price_have_none() -> None:
    assert price_of(ModelConfig(model="no-such-model-2024-01-01")) is None
    assert price_of(ModelConfig(model="gpt-4o-2024-08-06", base_url="http://127.0.0.1:8000/v1")) is None


def test_the_list_is_dated_by_the_newest_change_that_has_come() -> None:
    newest = re.search(r"newest price change (\S+)", price_list(date(2100, 1, 1)))
    assert newest is not None
    earlier = re.search(r"newest price change (\S+)", price_list(date(2025, 6, 1)))
    assert earlier is not None
    assert earlier[1] <= "2025-06-01" < newest[1]
    assert "newest" not in price_list(date(2000, 1, 1))
