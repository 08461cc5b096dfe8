"""Where the work of a run takes place: in one event loop of this process, or shards of it in many workers.

An executor is a file here or an entry point of `judgekit.executors`. `event_loop` is what every workflow runs on, in a
worker too.
"""
