"""A small RAG service over the notes of the shipped example, for tests of live systems.

Run as a program it serves HTTP (`--port 0` prints the port) or answers line by line (`--lines`); `ask` is the function.
The retriever counts words in common; the answer is the first sentence of the best chunk.
"""

import re
from pathlib import Path

NOTES = Path(__file__).parent.parent / "configs" / "quickstart"


def words(text: str) -> set[str]:
    return {word for word in re.findall(r"[a-z0-9]+", text.lower()) if len(word) > 2}
