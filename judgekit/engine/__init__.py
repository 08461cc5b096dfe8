"""How a judge is asked: from a judge input to one line of judgments.jsonl, a verdict or a recorded failure.

`passes` takes the stored inputs that have no answer yet and runs one `judging.JudgingPass` for each judge and model.
There a judge input goes this way: `requests` renders it and hashes the request; an equal reply comes from the cache;
else `limiter` gives it a slot, `budget` sets aside what it may cost, the provider is called, and `pinning` holds the
reply against the pinned model; the reply is parsed (`judgekit.judges.parsing`), and asked for once more if it cannot be
read; `judgment_draft` makes the line, which goes to the recorder together with the reply to cache.
Where a model is asked by batch, `batch_desk` stands in the place of the call: it has the reply, or puts the question
off; `batch_jobs` carries what was put off to the server and back.
`model_runtime` is what all passes share of one model: what it takes, which build it is, what it costs.
"""
