"""Findings to text: terminal tables, markdown, JSON, JUnit XML, CSV rows, and the pages under `html/`.

Functions take findings or stored records and return text; nothing is read or written here. Text of cases and models is
hostile, so it is escaped for HTML, defused for spreadsheets and stripped of control characters for terminals.
"""
