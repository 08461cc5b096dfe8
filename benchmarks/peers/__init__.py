"""Drivers of the peers: each runs in the environment of the package that it drives, never in judgekit's."""
