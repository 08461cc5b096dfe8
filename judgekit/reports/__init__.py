"""Findings to text: what commands print, markdown, JSON, JUnit XML, CSV, and the pages whose templates are in `html/`.

`*_text` is what commands print, `*_page` a page; a `*_report` writes one kind of finding for summary.md, the terminal
and the page. Nothing is read or written here. Text of cases and models is hostile: it goes through `safe_text`.
"""
