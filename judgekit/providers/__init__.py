"""How a judge model is asked: requests out, responses and typed errors back.

A provider is one file and makes one call without retries; the retry layer goes around it. The engine decides what is
asked and when. The embedded word-overlap baseline is a provider like the others, so that everything works offline.
"""
