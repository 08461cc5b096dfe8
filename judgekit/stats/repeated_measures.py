"""Scores of cases that are answered several times: where their variance lies, and how reliably a case passes.

The design is nested: answers within cases, verdicts within answers, each drawn at random. A score is

    x = mean + case + system + judge

with `case` the same for all answers to a case, `system` for all verdicts on one answer, and `judge` another for each
verdict. What is estimated are the variances of the three. All of it is made of sums over cases (`case_row`), so that
cases of any number of answers are taken as they are, and cases or clusters of cases can be resampled.

What a judge gets wrong about a case every time it is asked is a part of `case`: repeats cannot tell it apart.

Source: Cronbach, Gleser, Nanda and Rajaratnam 1972, "The Dependability of Behavioral Measurements"; Brennan 2001,
"Generalizability Theory", section 7.2 (unequal numbers: the analogous-ANOVA procedure, Henderson 1953, method 1).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from judgekit.stats.bootstrap import Row
from judgekit.stats.distributions import Z


def case_row(scores: Sequence[float], verdicts: Sequence[Sequence[float]] = (), centre: float = 0.0) -> Row:
    """What one case adds to the sums that all figures of this module take, in this order.

    `1, n, n^2, 1 / n, T, T^2 / n, S, W, d`: n answers with the sum T of their scores less the centre, S the squared
    deviations of these scores from their mean, W those of verdicts from the mean of their answer, and d the verdicts
    beyond the first on each answer.

    Args:
        scores: the score of each answer, by its first verdict; at least one.
        verdicts: for each answer that was judged more than once, the scores of all its verdicts.
        centre: subtracted from the scores; near their mean, so that nothing is lost to rounding. It changes no figure.
    """
    n = float(len(scores))
    total = math.fsum(score - centre for score in scores)
    spread = squared_deviations(scores)
    within = math.fsum(squared_deviations(again) for again in verdicts)
    beyond = float(sum(len(again) - 1 for again in verdicts))
    return (1.0, n, n * n, 1.0 / n, total, total * total / n, spread, within, beyond)


def squared_deviations(values: Sequence[float]) -> float:
    """Sum of squared deviations from the mean; exactly 0 for equal values."""
    if min(values) == max(values):
        return 0.0
    middle = math.fsum(values) / len(values)
    return math.fsum((value - middle) ** 2 for value in values)


def answer_variance(*sums: float) -> float | None:
    """Variance between answers to one case: of system and judge together, `S / (N - I)` with I cases and N answers.

    Unbiased. Assumption: how often a case is answered has nothing to do with how much its answers vary.

    Returns:
        At least 0; None if no case has two answers.
    """
    n_cases, n_answers, spread = sums[0], sums[1], sums[6]
    return spread / (n_answers - n_cases) if n_answers - n_cases > 0.5 else None


def case_variance(*sums: float) -> float | None:
    """Variance between cases, `(B / (I - 1) - S / (N - I)) / n0`, with what answers add to case means taken out.

    `B = sum T^2 / n - (sum T)^2 / N`, `n0 = (N - sum n^2 / N) / (I - 1)`; n0 = n where each case has n answers.

    Returns:
        Unbiased, and so below 0 where cases vary little and answers much; None for fewer than two cases, or if none
        has two answers.
    """
    within = answer_variance(*sums)
    n_cases, n_answers, squares, _, total, between = sums[:6]
    if within is None or n_cases < 1.5:
        return None
    size = (n_answers - squares / n_answers) / (n_cases - 1.0)
    return ((between - total * total / n_answers) / (n_cases - 1.0) - within) / size if size > 0 else None


def judge_variance(*sums: float) -> float | None:
    """Variance between verdicts on one answer, `W / d`; at least 0, None if no answer was judged twice."""
    within, beyond = sums[7], sums[8]
    return within / beyond if beyond > 0.5 else None


def system_variance(*sums: float) -> float | None:
    """Variance between answers to one case but for the judge's: `answer_variance - judge_variance`.

    Returns:
        Unbiased, and so below 0 where all of it may be the judge's; None if either is.
    """
    both, judge = answer_variance(*sums), judge_variance(*sums)
    return None if both is None or judge is None else both - judge


def generalizability(*sums: float) -> float | None:
    """Share of the variance of case means that is that of the cases: `c / (c + a / n)`.

    c is `case_variance`, a `answer_variance` and n the harmonic mean of the numbers of answers. It is the correlation
    that the case means of this run would have with those of another run of the same system on the same cases.

    Returns:
        At most 1; below 0 where c is. None if one of the two is, or if case means do not vary at all.

    Source: Brennan 2001, section 4.2 (the coefficient), 7.2 (the harmonic mean).
    """
    case, answer = case_variance(*sums), answer_variance(*sums)
    if case is None or answer is None:
        return None
    noise = answer * sums[3] / sums[0]
    return case / (case + noise) if case + noise > 0 else None


@dataclass(frozen=True, slots=True)
class Design:
    """How many cases, answers and verdicts a mean over answers rests on, and how much each of them varies."""

    case: float
    """Variances, at least 0."""
    system: float
    judge: float
    """0 where it is not known apart from `system`, which then holds both."""
    n_cases: float
    n_answers: float
    squares: float
    """Sum of the squares of the numbers of answers of the cases."""
    verdicts: float = 1.0
    """Verdicts on each answer, whose mean is its score."""

    def error(self) -> float:
        """Standard error of the mean over all answers: `sqrt(c sum n^2 / N^2 + (s + j / m) / N)`.

        Source: Brennan 2001, section 4.1 (D-study: the absolute error of a mean, for other numbers than were measured).
        """
        answers = (self.system + self.judge / self.verdicts) / self.n_answers
        return math.sqrt(self.case * self.squares / self.n_answers**2 + answers)

    def half_width(self) -> float:
        """Half of the 95% interval of the mean."""
        return Z * self.error()

    def same_cases(self) -> float:
        """How far two such runs of one system on the same cases differ by chance, 95% of the time: `z sqrt(2 a / N)`.

        Cases are the same in both, so their variance is not part of it.
        """
        return Z * math.sqrt(2.0 * (self.system + self.judge / self.verdicts) / self.n_answers)

    def with_cases(self, n_answers: float) -> "Design":
        """So many more answers to new cases, each asked as often as cases are now on average."""
        grown = (self.n_answers + n_answers) / self.n_answers
        return Design(
            self.case,
            self.system,
            self.judge,
            self.n_cases * grown,
            self.n_answers * grown,
            self.squares * grown,
            self.verdicts,
        )

    def with_answers(self, n_answers: float) -> "Design":
        """So many more answers to the same cases, spread over them as the answers are now."""
        grown = (self.n_answers + n_answers) / self.n_answers
        return Design(
            self.case,
            self.system,
            self.judge,
            self.n_cases,
            self.n_answers * grown,
            self.squares * grown**2,
            self.verdicts,
        )

    def with_verdicts(self, n_verdicts: float) -> "Design":
        """So many more verdicts on the same answers, spread evenly over them."""
        more = self.verdicts + n_verdicts / self.n_answers
        return Design(self.case, self.system, self.judge, self.n_cases, self.n_answers, self.squares, more)


def all_pass(n_passed: int, n: int, k: int) -> float:
    """pass^k of one case: the share of all ways to draw k of its n answers in which all k pass, `C(c, k) / C(n, k)`.

    Unbiased for p^k, p being the probability that an answer to the case passes.

    Args:
        n_passed: answers that pass, c.
        n: answers, at least k.
        k: answers that all have to pass, at least 1.

    Raises:
        ValueError: k is not between 1 and n.

    Source: Yao, Shinn, Razavi and Narasimhan 2024, "tau-bench: A Benchmark for Tool-Agent-User Interaction in
    Real-World Domains".
    """
    if not 1 <= k <= n:
        raise ValueError(f"{k} of {n} answers cannot be drawn")
    return math.comb(n_passed, k) / math.comb(n, k)


def any_passes(n_passed: int, n: int, k: int) -> float:
    """pass@k of one case: the share of these draws in which at least one passes, `1 - C(n - c, k) / C(n, k)`.

    Unbiased for 1 - (1 - p)^k. Arguments and errors as for `all_pass`.

    Source: Chen et al. 2021, "Evaluating Large Language Models Trained on Code".
    """
    return 1.0 - all_pass(n - n_passed, n, k)
