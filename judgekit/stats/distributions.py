"""Tail areas and quantiles that intervals need, from the standard library alone.

`scipy.special` and `scipy.stats` have the same figures; they are 100 MB that a base installation does not need.
Tests hold both against each other to a relative 1e-9.
"""

import math
from functools import lru_cache
from statistics import NormalDist

UPPER = 0.975
"""Probability below the upper end of a 95% interval; all intervals are such."""

Z = NormalDist().inv_cdf(UPPER)
"""Standard errors from a normal centre to the end of a 95% interval: 1.96."""

_HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)
_SMALLEST = 1e-300
_MAX_TERMS = 20_000
_MAX_STEPS = 100
_SMALL_STEP = 1e-8
"""Relative size of the last Newton step; the error after it is about the square."""
_CENTRE = 0.02
"""Tail area above which a quantile of t is found from the area around 0, where the tail area says little.

Below it, t > 2, and the continued fraction of the tail area converges fast."""


def regularised_beta(a: float, b: float, x: float) -> float:
    """Regularised incomplete beta function `I_x(a, b)`: the probability that a Beta(a, b) variable is <= x.

    `I_x(a, b) = x^a (1-x)^b / (a B(a, b)) * 1 / (1 + d_1 / (1 + d_2 / (1 + ...)))`, on the side of the mean where
    the fraction converges fast, `1 - I_{1-x}(b, a)` on the other.

    Args:
        a: first shape, above 0.
        b: second shape, above 0.
        x: upper limit of the integral, in [0, 1].

    Returns:
        In [0, 1]; 0.0 where the value is below the smallest float.

    Raises:
        ValueError: a shape that is not above 0, or x outside [0, 1].
        ArithmeticError: no convergence, for shapes far beyond 1e7.

    Source: continued fraction: DLMF 8.17.22, evaluated by Lentz 1976 as modified by Thompson and Barnett 1986;
    `x^a (1-x)^b / B(a, b)`: Loader 2000, "Fast and Accurate Computation of Binomial Probabilities".
    """
    _check_shapes(a, b)
    if not 0.0 <= x <= 1.0:
        raise ValueError(f"x of an incomplete beta function is in [0, 1], not {x}")
    return _beta_area(a, b, x, 1.0 - x)


def log_beta_tail(a: float, b: float, x: float) -> float:
    """Log of the upper tail `1 - I_x(a, b)`: the log probability that a Beta(a, b) variable is above x.

    Taken on the log scale throughout, so that a tail of e^-5000 is still told from one of e^-6000. At most 0.0.

    Raises:
        ValueError: a shape that is not above 0, or x outside [0, 1).
        ArithmeticError: no convergence, for shapes far beyond 1e7.

    Source: as `regularised_beta`.
    """
    _check_shapes(a, b)
    if not 0.0 <= x < 1.0:
        raise ValueError(f"x of an upper tail is in [0, 1), not {x}")
    if x == 0.0:
        return 0.0
    y = 1.0 - x
    front = _log_beta_front(a, b, x, y)
    if y * (a + b + 2.0) < b + 1.0:
        return front + math.log(_beta_fraction(b, a, y) / b)
    return math.log1p(-math.exp(front) * _beta_fraction(a, b, x) / a) + 0.0


def log_beta_power(a: float, b: float, x: float) -> float:
    """`log(x^a (1 - x)^b / B(a, b))`: the log density of Beta(a, b) at x in (0, 1), times x (1 - x).

    Raises:
        ValueError: a shape that is not above 0, or x outside (0, 1).

    Source: Loader 2000, "Fast and Accurate Computation of Binomial Probabilities".
    """
    _check_shapes(a, b)
    if not 0.0 < x < 1.0:
        raise ValueError(f"x of a beta density is in (0, 1), not {x}")
    return _log_beta_front(a, b, x, 1.0 - x)


def beta_quantile(p: float, a: float, b: float) -> float:
    """The x with `I_x(a, b) = p`, found by halving the interval that holds it.

    Args:
        p: probability, in (0, 1).
        a: first shape, above 0.
        b: second shape, above 0.

    Returns:
        In [0, 1], to the last digits of a float near 1 and to 1e-300 near 0.

    Raises:
        ValueError: p is not in (0, 1), or a shape that is not above 0.

    Source: in-house; same value as `scipy.special.betaincinv`.
    """
    _check_probability(p)
    low, high = 0.0, 1.0
    while low < (middle := 0.5 * (low + high)) < high and high > _SMALLEST:
        if regularised_beta(a, b, middle) < p:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


@lru_cache(maxsize=4096)
def student_t_quantile(p: float, df: int) -> float:
    """The t with P(T <= t) = p for a Student-t variable T with `df` degrees of freedom.

    Closed forms for 1 and 2 degrees of freedom; beyond, Newton steps on `P(T > t) = I_x(df/2, 1/2) / 2` with
    `x = df / (df + t^2)`: on the area around 0 in the middle, on log area against log t in the tails. Both curves
    are concave, so that steps from the normal quantile cannot diverge.

    Args:
        p: probability, in (0, 1).
        df: degrees of freedom, at least 1.

    Returns:
        Any finite number; 0.0 for p = 0.5, 2.262157162740992 for p = 0.975 and df = 9.

    Raises:
        ValueError: p is not in (0, 1), or df below 1.

    Source: Student 1908, "The Probable Error of a Mean"; solved here, see above.
    """
    _check_probability(p)
    if df < 1:
        raise ValueError(f"degrees of freedom are at least 1, not {df}")
    tail = min(p, 1.0 - p)
    if tail == 0.5:
        return 0.0
    if df == 1:
        t = math.tan(math.pi * (0.5 - tail)) if tail > 0.25 else 1.0 / math.tan(math.pi * tail)
    elif df == 2:
        t = (1.0 - 2.0 * tail) / math.sqrt(2.0 * tail * (1.0 - tail))
    else:
        start = -NormalDist().inv_cdf(tail)
        t = _from_centre(tail, df, start) if tail > _CENTRE else _from_tail(tail, df, start)
    return math.copysign(t, p - 0.5)


def _check_shapes(a: float, b: float) -> None:
    if not (a > 0 and b > 0 and math.isfinite(a) and math.isfinite(b)):
        raise ValueError(f"shapes of a beta distribution are finite and above 0, not {a} and {b}")


def _check_probability(p: float) -> None:
    if not 0.0 < p < 1.0:
        raise ValueError(f"a quantile is asked for at a probability in (0, 1), not {p}")


def _from_centre(tail: float, df: int, t: float) -> float:
    for _ in range(_MAX_STEPS):
        x, y = df / (df + t * t), t * t / (df + t * t)
        missing = (0.5 - tail) - 0.5 * _beta_area(0.5, 0.5 * df, y, x)
        step = missing * t / math.exp(_log_beta_front(0.5 * df, 0.5, x, y))  # the density at t is front / t
        t += step
        if abs(step) <= _SMALL_STEP * t:
            return t
    raise ArithmeticError(f"no Student-t quantile found for tail {tail}, df {df}")


def _from_tail(tail: float, df: int, t: float) -> float:
    for _ in range(_MAX_STEPS):
        x, y = df / (df + t * t), t * t / (df + t * t)
        area_over_front = _beta_fraction(0.5 * df, 0.5, x) / df
        log_area = _log_beta_front(0.5 * df, 0.5, x, y) + math.log(area_over_front)
        step = (log_area - math.log(tail)) * area_over_front  # d log(area) / d log(t) is -front / area
        t *= math.exp(step)
        if abs(step) <= _SMALL_STEP:
            return t
    raise ArithmeticError(f"no Student-t quantile found for tail {tail}, df {df}")


def _beta_area(a: float, b: float, x: float, y: float) -> float:
    """`I_x(a, b)` with y = 1 - x given apart, since 1 - x forgets a small y."""
    if x <= 0.0 or y <= 0.0:
        return 0.0 if x <= 0.0 else 1.0
    if x * (a + b + 2.0) < a + 1.0:
        return math.exp(_log_beta_front(a, b, x, y)) * _beta_fraction(a, b, x) / a
    return 1.0 - math.exp(_log_beta_front(a, b, x, y)) * _beta_fraction(b, a, y) / b


def _log_beta_front(a: float, b: float, x: float, y: float) -> float:
    """`log(x^a y^b / B(a, b))`, without the difference of large logarithms that costs digits from a = 1e4 on."""
    total = a + b
    stirling = _stirling_error(total) - _stirling_error(a) - _stirling_error(b)
    log_root = 0.5 * math.log(a * (b / total)) - _HALF_LOG_TWO_PI
    return stirling + log_root - _deviance(a, total * x) - _deviance(b, total * y)


def _deviance(observed: float, expected: float) -> float:
    """`observed log(observed / expected) + expected - observed`, exact where the two are close."""
    if expected <= 0.0:
        return math.inf
    excess = (expected - observed) / observed
    if excess < -0.5:
        return observed * math.log(observed / expected) + expected - observed
    return observed * (excess - math.log1p(excess))


def _stirling_error(z: float) -> float:
    """`log Gamma(z)` minus Stirling's `(z - 1/2) log z - z + log(2 pi) / 2`."""
    if z < 16.0:
        return math.lgamma(z) - ((z - 0.5) * math.log(z) - z + _HALF_LOG_TWO_PI)
    w = 1.0 / (z * z)
    return (1 / 12 - w * (1 / 360 - w * (1 / 1260 - w * (1 / 1680 - w / 1188)))) / z


def _beta_fraction(a: float, b: float, x: float) -> float:
    c = 1.0
    d = 1.0 / _away_from_zero(1.0 - (a + b) * x / (a + 1.0))
    value = d
    for m in range(1, _MAX_TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m))
        d = 1.0 / _away_from_zero(1.0 + even * d)
        c = _away_from_zero(1.0 + even / c)
        value *= d * c
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0))
        d = 1.0 / _away_from_zero(1.0 + odd * d)
        c = _away_from_zero(1.0 + odd / c)
        value *= d * c
        if abs(d * c - 1.0) < 1e-15:
            return value
    raise ArithmeticError(f"no convergence of the incomplete beta function at a = {a}, b = {b}, x = {x}")


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _SMALLEST else _SMALLEST
