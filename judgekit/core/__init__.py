"""The words that everyone uses: configs, cases, outputs, prompts, judgments, scores, runs, components, errors.

Frozen types and the few rules that belong to them, such as what a cache key contains or which of several judgments
counts. Core imports nothing of judgekit outside itself and reaches no disk, clock or network.
"""
