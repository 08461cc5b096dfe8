"""What became of the documents of a corpus on their way into the index."""

from typing import Annotated

from pydantic import Field, model_validator

from judgekit.core.field_types import Id, OptionalText, Record, Text

Count = Annotated[int, Field(ge=0)]

CONTEXT_REASON = "context"
"""Reasons that begin with this word say that a chunk was too long for the embedding model."""


class IndexedDocument(Record):
    """What became of one document on its way into the index."""

    doc_id: Id
    rel_path: OptionalText = None
    """Path of the file; its extension is the document's type."""
    n_chunks: Count
    """Chunks that the document was cut into; 0: it cannot be found."""
    n_attempted: Count | None = None
    """Chunks that were sent to the embedding model; left out: `n_embedded` and what was skipped, else `n_chunks`."""
    n_embedded: Count | None = None
    """Chunks that are in the index; left out: `n_attempted` less what was skipped."""
    skipped: dict[Text, Count] | None = None
    """Chunks that were not embedded, by reason; `context_length`: too long for the model. Empty: none was."""
    chunk_tokens: tuple[Count, ...] | None = None
    """Tokens of each chunk."""
    chunker_version: OptionalText = None
    embedding_model: OptionalText = None
    index_version: OptionalText = None

    @model_validator(mode="after")
    def _counts_agree(self) -> "IndexedDocument":
        if self.n_attempted is not None and self.n_embedded is None and self.skipped is None:
            raise ValueError("n_attempted says nothing by itself; add n_embedded or skipped")
        counts = self.embedding_counts
        if counts is None:
            return self
        n_attempted, n_embedded = counts
        if n_embedded + self.n_skipped != n_attempted or n_embedded < 0:
            embedded = "" if self.n_embedded is None else f"{n_embedded} embedded and "
            raise ValueError(
                f"{embedded}{self.n_skipped} skipped do not fit {n_attempted} attempted; every chunk that was not "
                "embedded needs a reason in skipped"
            )
        return self

    @property
    def n_skipped(self) -> int:
        """Chunks that were not embedded."""
        return sum((self.skipped or {}).values())

    @property
    def n_skipped_context(self) -> int:
        """Chunks that were too long for the embedding model."""
        found = self.skipped or {}
        return sum([n for reason, n in found.items() if reason.strip().lower().startswith(CONTEXT_REASON)])

    @property
    def embedding_counts(self) -> tuple[int, int] | None:
        """Chunks attempted and embedded; None if the record says nothing of embedding."""
        if self.n_attempted is None and self.n_embedded is None and self.skipped is None:
            return None
        n_attempted = self.n_attempted
        if n_attempted is None:
            n_attempted = self.n_chunks if self.n_embedded is None else self.n_embedded + self.n_skipped
        return n_attempted, n_attempted - self.n_skipped if self.n_embedded is None else self.n_embedded
