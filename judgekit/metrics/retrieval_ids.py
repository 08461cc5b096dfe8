"""Retrieval by chunk and document ids, citations that resolve, and refusals."""

from typing import ClassVar

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.components import Metric
from judgekit.core.field_types import Id
from judgekit.core.scores import Column, Failed, NotApplicable, Outcome, Outcomes
from judgekit.metrics.gold_positions import Gold, Positions, empty_positions, positions_of_output
from judgekit.metrics.ranking import Cutoffs, figures_at, names_at, reciprocal_rank

MRR_CUTOFF = 10
"""Rank up to which `mrr_chunk` looks."""

NO_CHUNKS = NotApplicable("no expected_chunk_ids")
NO_DOCS = NotApplicable("no expected_doc_ids")
_NO_CITATIONS = NotApplicable("output has no citations list")
_NO_ANSWER = NotApplicable("no answer")
_NOT_GROUNDED = NotApplicable("answer is marked as not grounded")
_NO_REFUSAL = NotApplicable("expected_doc_ids is not an empty list")


class RetrievalIds(Metric):
    """Retrieval scores against expected chunk and document ids.

    All in [0, 1], higher is better unless said otherwise; ids are compared as text:

    * `hit@k`: 1 if an expected chunk has rank <= k, else 0.
    * `mrr_chunk`: 1 / rank of the first expected chunk, 0 if it is not in the first 10.
    * `precision_chunk@k`: expected chunks with rank <= k, divided by k. These three are not applicable
      without `expected_chunk_ids`.
    * `recall_doc@k`: share of the distinct expected documents among the hits with rank <= k; not applicable
      without `expected_doc_ids`.
    * `citation_coverage`: 1 if the answer cites something and every citation is a known chunk, else 0; not
      applicable without an answer, where it is marked as not grounded, or where citations are not reported.
    * `empty_result` (lower is better): 1 if nothing was retrieved, else 0; always a number: an errored
      output counts as empty.
    * `refusal_correct`: 1 if the system refused (`grounded` false or `abstained` true), else 0; applies if
      `expected_doc_ids` is given and empty, and the output has an answer or says whether it refused.

    An empty hit list scores 0 in the first four.

    Source: trec_eval (precision, recall, success), Voorhees 1999 (MRR); the rest in-house.
    """

    needs: ClassVar[tuple[tuple[str, ...], ...]] = (("output.retrieved",),)

    ks: Cutoffs = (1, 3, 5, 10)
    """Cut-offs of hit, recall_doc and precision_chunk."""
    corpus_chunk_ids: frozenset[Id] | None = None
    """Ids of all chunks of the corpus, against which citations are resolved; None: the output's own hits."""

    def columns(self) -> tuple[Column, ...]:
        columns: list[Column] = []
        for k in self.ks:
            columns += [
                Column(f"hit@{k}", binary=True, by_chunk_id=True),
                Column(f"precision_chunk@{k}", binary=k == 1, by_chunk_id=True),
                Column(f"recall_doc@{k}"),
            ]
        return (
            *columns,
            Column("mrr_chunk", by_chunk_id=True),
            Column("citation_coverage", binary=True),
            Column("empty_result", higher_is_better=False, binary=True),
            Column("refusal_correct", binary=True),
        )

    def calculate(self, case: Case, output: SystemOutput) -> Outcomes:
        failed = None if output.error is None else Failed(output.error.kind)
        gold = Gold(
            tuple(dict.fromkeys(case.expected_chunk_ids or ())), tuple(dict.fromkeys(case.expected_doc_ids or ()))
        )
        found = positions_of_output(gold, output) if failed is None else empty_positions(gold)
        return {
            **self._chunks(found, failed),
            **self._docs(found, failed),
            "citation_coverage": failed or self._citation_coverage(output),
            "empty_result": _empty_result(found),
            "refusal_correct": _NO_REFUSAL if case.expected_doc_ids != () else failed or _refusal_correct(output),
        }

    def ranked(self, found: Positions, failed: Failed | None = None) -> Outcomes:
        """The scores that depend on nothing but where the gold stands: all but those about the answer."""
        return {**self._chunks(found, failed), **self._docs(found, failed), "empty_result": _empty_result(found)}

    def _chunks(self, found: Positions, failed: Failed | None) -> Outcomes:
        names = (*names_at("hit", self.ks), *names_at("precision_chunk", self.ks))
        if not found.n_chunks:
            return dict.fromkeys((*names, "mrr_chunk"), NO_CHUNKS)
        if failed is not None:
            return dict.fromkeys((*names, "mrr_chunk"), failed)
        figures = figures_at(self.ks, found.n_chunks, found.chunks, found.chunks)
        outcomes: Outcomes = {"mrr_chunk": reciprocal_rank(found.chunks, MRR_CUTOFF)}
        outcomes.update(zip(names, (*figures.hit, *figures.precision), strict=True))
        return outcomes

    def _docs(self, found: Positions, failed: Failed | None) -> Outcomes:
        names = names_at("recall_doc", self.ks)
        if not found.n_docs:
            return dict.fromkeys(names, NO_DOCS)
        if failed is not None:
            return dict.fromkeys(names, failed)
        return dict(zip(names, figures_at(self.ks, found.n_docs, found.docs, found.docs).recall, strict=True))

    def _citation_coverage(self, output: SystemOutput) -> Outcome:
        if output.answer is None:
            return _NO_ANSWER
        if output.grounded is False:
            return _NOT_GROUNDED
        if output.citations is None:
            return _NO_CITATIONS
        known = self.corpus_chunk_ids
        if known is None:
            known = frozenset([hit.chunk_id for hit in output.retrieved if hit.chunk_id is not None])
        resolved = bool(output.citations) and all(entry.citation in known for entry in output.citations)
        return 1.0 if resolved else 0.0


def _empty_result(found: Positions) -> float:
    return 1.0 if found.is_empty else 0.0


def _refusal_correct(output: SystemOutput) -> Outcome:
    if output.grounded is False or output.abstained is True:
        return 1.0
    if output.answer is None and output.grounded is None and output.abstained is None:
        return _NO_ANSWER
    return 0.0
