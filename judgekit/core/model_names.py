"""Names of hosted models: which of them can be pointed at another model."""

import re

_DATED = re.compile(
    r"(?:19|20)\d{2}-?\d{2}-?\d{2}"  # 2024-08-06, 20250514
    r"|(?<=[-_@.])\d{4}(?=$|[-_@:])"  # -0613, -2411
    r"|(?<=-)\d{3}$"  # -001
    r"|(?<=[-_@:])v\d+(?:\.\d+)*(?=$|[-_:])"  # -v2.1
    r"|sha256:[0-9a-f]{8,}"
)


def is_floating(model: str) -> bool:
    """Whether a hosted model's name can be pointed at another model: no date or version stands in it.

    `gpt-4o`, `gpt-4.1` and `x-latest` float, `gpt-4o-2024-08-06` does not. Names of open weights
    (`org/Name-3.1-8B`) count as fixed when they carry a version number.
    """
    if re.search(r"(^|[-_:])latest($|[-_])", model):
        return True
    if _DATED.search(model):
        return False
    return not ("/" in model and re.search(r"\d+\.\d+", model.rsplit("/", 1)[1]))
