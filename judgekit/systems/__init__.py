"""How the system under test is asked: one file a system, found by its name in the config."""
