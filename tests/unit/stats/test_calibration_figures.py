"""The figures that the documents give of labels and comparators, measured again where the data are there."""

from pathlib import Path

import pytest

from benchmarks import calibration, reliability
from benchmarks.recorded import Figure, Skipped
from tests.builders import REPOSITORY

DATA = REPOSITORY.parent / "shared" / "data"


@pytest.mark.parametrize("function", calibration.FIGURES, ids=lambda function: function.__name__)
@pytest.mark.slow
def test_every_figure_holds(function: object) -> None:
    assert callable(function)
    try:
        found: Figure = function(DATA)
    except Skipped as error:
        pytest.skip(str(error))
    assert found.holds, found


def test_a_figure_without_its_data_is_skipped_with_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("ppi_coverage", "comparator_lift", "published_agreement"):
        assert reliability.main(["--data", str(tmp_path), "--only", name]) == 0
    printed = capsys.readouterr().out
    assert printed.count("skipped, no ") == 2
    assert "published_agreement: 0 " in printed
