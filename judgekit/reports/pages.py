"""HTML pages: templates with autoescape, one file a page, and a policy that lets only our own script and style in.

Templates, style and script are part of the package and are read through its loader. What a page shows of a run is
foreign text: every expression of a template is escaped, and characters that could reorder or hide text are replaced.
"""

import base64
import hashlib
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from judgekit.reports.safe_text import inert


def render(template: str, context: Mapping[str, Any], script: str | None = None) -> Iterator[str]:
    """A page as pieces of text, so that a large one is never held as a whole.

    Args:
        template: name of the page in the package, such as `report.html`.
        context: what it shows.
        script: name of its script; None: the page has none.
    """
    style = asset("style.css")
    code = None if script is None else asset(script)
    values = {"style": Markup(style), "script": code and Markup(code), "policy": policy(script)}  # noqa: S704  # ours
    yield from _environment().get_template(template).generate(values | dict(context))


ASKING = frozenset({"label.js", "runs.js"})
"""Scripts that ask the server that their page came from."""


def policy(script: str | None = None) -> str:
    """The Content-Security-Policy of a page: nothing from outside, and of what is inside only our script and style."""
    allowed = "" if script is None else f" script-src '{_digest(asset(script))}';"
    allowed += " connect-src 'self';" if script in ASKING else ""
    return (
        f"default-src 'none';{allowed} style-src '{_digest(asset('style.css'))}'; img-src data:; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )


@cache
def asset(name: str) -> str:
    """A style or script of the package, by file name."""
    environment = _environment()
    loader = environment.loader
    assert loader is not None  # noqa: S101  # for the type checker: it is set below
    return loader.get_source(environment, name)[0]


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("judgekit.reports", "html"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["commands"] = _commands
    return environment


def _commands(text: str) -> Markup:
    """Text for a page, in which what stands between backticks is code."""
    parts = [escape(inert(part)) for part in text.split("`")]
    return Markup("").join(Markup("<code>{}</code>").format(part) if n % 2 else part for n, part in enumerate(parts))


def _finalize(value: object) -> object:
    if isinstance(value, Markup):
        return value
    return inert(str(value))


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode('ascii')}"
