"""pytest: a fixture `judged` and a marker `judge`, with one run folder for the session.

`hooks` is what pytest loads, `judged` what a test is given, `sessions` what the processes of a session share. Nothing
else of judgekit is imported before a test uses the fixture. What a test judges is judged at once, through the reply
cache of the results folder. At the end of the session all of it becomes one run, for which the replies are there.
"""
