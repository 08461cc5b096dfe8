"""Retrieval by gold supports: were the gold supports found, how early, and were they cited."""

from functools import cache
from typing import ClassVar

from judgekit.core.cases import Case, Scope, SystemOutput
from judgekit.core.components import Metric, Verdicts
from judgekit.core.judgments import Verdict
from judgekit.core.scores import Column, Failed, NotApplicable, Outcome, Outcomes
from judgekit.core.text import instant_of, is_blank, normalise_path
from judgekit.metrics.gold_evidence import GoldSupports, SnippetMode
from judgekit.metrics.gold_positions import Gold, Positions, empty_positions, positions_of_output
from judgekit.metrics.ranking import Cutoffs, figures_at, hit_at, names_at, reciprocal_rank

NO_SUPPORTS = NotApplicable("no gold_supports")
NO_GROUPS = NotApplicable("no required_support_groups")
_NOT_ANSWERABLE = NotApplicable("answerable is not true")
_NO_SCOPE = NotApplicable("no scope mode on or on_with_fallback")
_NO_RULE = NotApplicable("no recency_conflict_rule")
_NO_DATES = NotApplicable("no gold support has a date")
_NEEDS_JUDGE = NotApplicable("needs the conflict judge")


class Retrieval(Metric):
    """Retrieval scores against gold supports (file and heading), and what the answer does with them.

    With the rank of a hit, and "right" for a hit that matches a gold support (see `gold_evidence`); all in [0, 1],
    higher is better unless said otherwise; not applicable without gold supports:

    * `recall_any@k`: 1 if a right hit has rank <= k, else 0.
    * `recall_all@k`: 1 if every support of at least one required group is matched with rank <= k, else 0;
      not applicable without `required_support_groups`.
    * `mrr`: 1 / rank of the first right hit, 0 if none; `mrr@k` likewise with rank <= k.
    * `precision@k`: right hits with rank <= k, divided by k.
    * `ndcg@k`: binary gain, log2 discount; a hit gains if it is the first to match some support; the ideal
      list has min(k, number of distinct supports) gains.
    * `scope_miss` (lower is better): 1 if no support lies in a selected folder, else 0; not applicable if
      the scope mode is off or not reported.
    * `attribution_hit`: 1 if a reference of the answer matches a support, else 0; answerable cases only.
    * `recency_conflict`: 1 if the references keep the case's rule, else 0. `cite_newer`: a support of the
      largest date is cited (any of several with that date; undated supports are never the newest);
      `cite_both`: every support is cited; `acknowledge_both`: every support is cited, and the answer states the
      conflict, which the judge `conflict` says; without that judge it is not applicable.

    An empty hit list scores 0 in the ranked figures, and an answer without references 0 in the last two.

    Source: Järvelin and Kekäläinen 2002 (nDCG), Voorhees 1999 (MRR), trec_eval (precision); the rest in-house.
    """

    needs: ClassVar[tuple[tuple[str, ...], ...]] = (("case.gold_supports",), ("output.retrieved",))
    judges_wanted: ClassVar[tuple[str, ...]] = ("conflict",)

    ks: Cutoffs = (1, 3, 5, 10)
    """Cut-offs of recall_any, recall_all, precision and ndcg."""
    mrr_ks: Cutoffs = ()
    """Cut-offs of further `mrr@k` scores, beside the `mrr` of the whole list."""
    snippets: SnippetMode = "if_text"
    """How the snippets of supports are looked for in the text of hits."""

    def columns(self) -> tuple[Column, ...]:
        columns: list[Column] = []
        for k in self.ks:
            columns += [
                Column(f"recall_any@{k}", binary=True),
                Column(f"recall_all@{k}", binary=True),
                Column(f"precision@{k}", binary=k == 1),
                Column(f"ndcg@{k}", binary=k == 1),
            ]
        return (
            *columns,
            Column("mrr"),
            *[Column(f"mrr@{k}", binary=k == 1) for k in self.mrr_ks],
            Column("scope_miss", higher_is_better=False, binary=True, aggregate="scope_miss_rate"),
            Column("attribution_hit", binary=True, aggregate="attribution_hit_rate"),
            Column("recency_conflict", binary=True),
        )

    def calculate(self, case: Case, output: SystemOutput) -> Outcomes:
        if not case.gold_supports:
            return dict.fromkeys(_names(self.ks, self.mrr_ks), NO_SUPPORTS)
        supports = GoldSupports(case.gold_supports, self.snippets)
        gold = Gold(supports=supports, groups=case.required_support_groups)
        failed = None if output.error is None else Failed(output.error.kind)
        outcomes = self.ranked(positions_of_output(gold, output) if failed is None else empty_positions(gold), failed)
        outcomes["scope_miss"] = failed or _scope_miss(supports, output.scope)
        cited = supports.cited_by(output.references)
        outcomes["attribution_hit"] = (failed or float(bool(cited))) if case.answerable is True else _NOT_ANSWERABLE
        recency = _recency_conflict(case, cited)
        outcomes["recency_conflict"] = recency if isinstance(recency, NotApplicable) else failed or recency
        return outcomes

    def ranked(self, found: Positions, failed: Failed | None = None) -> Outcomes:
        """The scores that depend on nothing but where the gold stands."""
        names = [name for figure in ("recall_any", "precision", "ndcg") for name in names_at(figure, self.ks)]
        mrr_names, all_names = ("mrr", *names_at("mrr", self.mrr_ks)), names_at("recall_all", self.ks)
        if not found.n_supports:
            return dict.fromkeys((*names, *mrr_names, *all_names), NO_SUPPORTS)
        if failed is not None:
            groups = dict.fromkeys(all_names, failed if found.groups else NO_GROUPS)
            return {**dict.fromkeys((*names, *mrr_names), failed), **groups}
        figures = figures_at(self.ks, found.n_supports, found.right, found.gaining)
        outcomes: Outcomes = {}
        for name, k in zip(mrr_names, (None, *self.mrr_ks), strict=True):
            outcomes[name] = reciprocal_rank(found.right, k)
        outcomes.update(zip(names, (*figures.hit, *figures.precision, *figures.ndcg), strict=True))
        complete = sorted([max(ranks) for ranks in found.groups if min(ranks)])
        for name, k in zip(all_names, self.ks, strict=True):
            outcomes[name] = hit_at(k, complete) if found.groups else NO_GROUPS
        return outcomes

    def calculate_judged(self, case: Case, output: SystemOutput, verdicts: Verdicts) -> Outcomes:
        """`recency_conflict` of cases whose rule is `acknowledge_both`; a blank answer states nothing, so it is 0."""
        if not case.gold_supports or case.recency_conflict_rule != "acknowledge_both":
            return {}
        if output.error is not None:
            return {"recency_conflict": Failed(output.error.kind)}
        said = verdicts["conflict"]
        if output.answer is not None and is_blank(output.answer):
            return {"recency_conflict": 0.0}
        if not isinstance(said, Verdict):
            return {"recency_conflict": said}
        cited = GoldSupports(case.gold_supports, self.snippets).cited_by(output.references)
        return {"recency_conflict": float(said.answer is True and len(cited) == len(case.gold_supports))}


@cache
def _names(ks: Cutoffs, mrr_ks: Cutoffs) -> tuple[str, ...]:
    """Names of all scores, kept: where no case has supports, making the columns would take most of the time."""
    return tuple(column.name for column in Retrieval(ks=ks, mrr_ks=mrr_ks).columns())


def _scope_miss(gold: GoldSupports, scope: Scope | None) -> Outcome:
    if scope is None or scope.mode == "off":
        return _NO_SCOPE
    # An empty prefix starts every path; the slash keeps `work` from holding `workshop/a.md`.
    prefixes = tuple([_folder_prefix(folder) for folder in scope.selected_folders])
    return 0.0 if any(path.startswith(prefixes) for path in gold.paths) else 1.0


def _folder_prefix(folder: str) -> str:
    path = normalise_path(folder).rstrip("/")
    return f"{path}/" if path not in ("", ".") else ""


def _recency_conflict(case: Case, cited: set[int]) -> Outcome:
    if case.recency_conflict_rule is None:
        return _NO_RULE
    if case.recency_conflict_rule == "acknowledge_both":
        return _NEEDS_JUDGE
    if case.recency_conflict_rule == "cite_both":
        return 1.0 if len(cited) == len(case.gold_supports) else 0.0
    moments = {index: instant_of(one.date) for index, one in enumerate(case.gold_supports) if one.date is not None}
    if not moments:
        return _NO_DATES
    newest = max(moments.values())
    return 1.0 if any(moments.get(index) == newest for index in cited) else 0.0
