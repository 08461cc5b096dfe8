"""The loops that are compiled where the package was built with a C compiler; without them figures are the same."""

try:
    from judgekit.kernel import _kernel as kernel
except ImportError:
    kernel = None  # type: ignore[assignment]
