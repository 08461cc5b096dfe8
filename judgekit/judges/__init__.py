"""What is asked of a judge model, and how its reply becomes a verdict.

A judge is one file: it builds the judge input of a case, reads the verdict, and turns it into scores. `parsing` gets a
verdict out of whatever a model writes, or says why there is none. The wording is a prompt file in `prompts/`; how a
model is called is the business of `judgekit.engine`.
"""
