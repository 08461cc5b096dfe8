"""Secrets taken out of what a server says: whole, in part, in another case, and as usually escaped and encoded."""

import re
from array import array
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

LEAST_RUN = 8
"""So many characters of a secret in a row are masked. A shorter key, such as `none`, is a stand-in and no secret."""

MASK = "[key]"

_URL_SAFE = str.maketrans("+/", "-_")

_BLOCK = 4
_STEP = LEAST_RUN - _BLOCK + 1
"""Every run of `LEAST_RUN` characters holds a whole block of 4 that begins at a multiple of 5."""

_ESCAPE = re.compile(
    r"(?<!\\)\\+(?:u([0-9a-f]{4})|x([0-9a-f]{2})|/)|%(?:25)*([0-9a-f]{2})|&#(?:x([0-9a-f]{2,4})|(\d{2,5}));", re.I
)
"""One character as JSON, Python, an address or HTML may write it; layers of JSON double the backslash, those of
addresses write `%25` for `%`."""
_ESCAPE_MARKS = ("\\u", "\\/", "\\x", "%", "&#")
_RAW_MARKS = (*(mark.encode() for mark in _ESCAPE_MARKS), b"data:")
"""With these a secret may stand in pieces in a body: escaped, or in several events of a stream."""


class Masker:
    """Knows the secrets of one model and takes them out of texts and decoded JSON."""

    def __init__(self, secrets: Iterable[str | None]) -> None:
        """Prepare; what is shorter than `LEAST_RUN` is not a secret."""
        plain = {secret for secret in secrets if secret and len(secret) >= LEAST_RUN}
        kept = {form.lower() for secret in plain for form in (secret, *_encoded(secret)) if len(form) >= LEAST_RUN}
        self._blocks = tuple(
            {secret[at : at + _BLOCK] for secret in kept for at in range(0, len(secret) - _BLOCK + 1, _STEP)}
        )
        # A quote or a backslash is escaped in JSON, so that only decoded texts can be searched for such a secret.
        self._raw_blocks = (
            () if any(set(secret) & set('"\\') for secret in kept) else tuple(map(str.encode, self._blocks))
        )
        self._runs = {secret[at : at + LEAST_RUN] for secret in kept for at in range(len(secret) - LEAST_RUN + 1)}

    def may_stand_in(self, content: bytes) -> bool:
        """Whether JSON that is not decoded yet may hold a part of a secret; a quick look that spares a long one."""
        if not self._blocks:
            return False
        if not self._raw_blocks or any(mark in content for mark in _RAW_MARKS):
            return True
        lower = content.lower()
        return any(block in lower for block in self._raw_blocks)

    def text(self, text: str) -> str:
        """The text with every run of a secret masked."""
        if len(text) < LEAST_RUN or not self._blocks:
            return text
        # Escapes first: a secret that is only partly escaped is one run once they are resolved.
        if any(mark in text for mark in _ESCAPE_MARKS) and self._may_hold(_ESCAPE.sub(_character, text).lower()):
            text = self._masked(*_unescaped(text), text)
        if self._may_hold(text.lower()):
            text = self._masked(text, range(len(text) + 1), text)
        return text

    def value(self, value: Any) -> Any:
        """Decoded JSON with every text in it masked, names of fields included.

        Raises:
            ValueError: it is nested too deeply.
        """
        if not self._blocks:
            return value
        try:
            return self._value(value)
        except RecursionError:
            raise ValueError("nested too deeply") from None

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(name): self._value(item) for name, item in value.items()}
        if isinstance(value, list):
            return [self._value(item) for item in value]
        return value

    def _may_hold(self, lower: str) -> bool:
        return any(block in lower for block in self._blocks)

    def _masked(self, plain: str, starts: Sequence[int], text: str) -> str:
        """Mask in `text` what is found in `plain`, whose characters begin at `starts` of it; the last is its length."""
        lower = plain.lower()
        if len(lower) != len(plain):
            # Some characters are longer in lower case, and places would no longer fit.
            lower = "".join(character.lower()[:1] for character in plain)
        pieces: list[str] = []
        end = masked_to = 0
        for at in range(len(lower) - LEAST_RUN + 1):
            if lower[at : at + LEAST_RUN] not in self._runs:
                continue
            if at >= masked_to:
                pieces += [text[end : starts[at]], MASK]
            masked_to = at + LEAST_RUN
            end = starts[masked_to]
        return "".join([*pieces, text[end:]])


class MaskedHeaders(Mapping[str, str]):
    """Headers of a reply by their names in lower case; values are decoded and masked when they are read."""

    def __init__(self, raw: Iterable[tuple[bytes, bytes]], masker: Masker) -> None:
        """Take the headers as they came; of one that is repeated the last counts."""
        self._raw = {name.lower(): value for name, value in raw}
        self._masker = masker

    def __getitem__(self, name: str) -> str:
        return self._masker.text(self._raw[name.encode()].decode("utf-8", "replace"))

    def get(self, name: str, default: Any = None) -> Any:
        """The value, or the default where the header is not there, without an exception for each that is not."""
        raw = self._raw.get(name.encode())
        return default if raw is None else self._masker.text(raw.decode("utf-8", "replace"))

    def __iter__(self) -> Iterator[str]:
        return (name.decode("utf-8", "replace") for name in self._raw)

    def __len__(self) -> int:
        return len(self._raw)


def _encoded(secret: str) -> Iterator[str]:
    """The secret in hexadecimal digits and in base64, where its letters depend on what stands before it."""
    content = secret.encode()
    yield content.hex()
    for n_before in range(3):
        whole = content[: len(content) - (len(content) + n_before) % 3]
        # The first letters hold bits of what stands before the secret.
        text = b64encode(b"\0" * n_before + whole).decode()[n_before + (n_before > 0) :]
        yield from {text, text.translate(_URL_SAFE)}


def _unescaped(text: str) -> tuple[str, Sequence[int]]:
    """The text with its escapes resolved, and where each character of it begins, and the end."""
    pieces: list[str] = []
    starts = array("q")
    end = 0
    for match in _ESCAPE.finditer(text):
        start = match.start()
        pieces += [text[end:start], _character(match)]
        starts.extend(range(end, start + 1))
        end = match.end()
    pieces.append(text[end:])
    starts.extend(range(end, len(text) + 1))
    return "".join(pieces), starts


def _character(match: re.Match[str]) -> str:
    digits = match[1] or match[2] or match[3] or match[4]
    return chr(int(digits, 16) if digits else int(match[5] or ord("/")))
