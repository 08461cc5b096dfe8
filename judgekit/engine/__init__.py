"""How a judge is asked."""
