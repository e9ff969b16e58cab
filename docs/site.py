#!/usr/bin/env python3
"""What `mdbook build docs` runs over the pages: links to files outside of docs/ lead to the repository, as the site has the pages alone."""

import json
import re
import sys

REPOSITORY = "https://github.com/kubeskiff/kubeskiff/tree/main"


def lead_outside(section):
    chapter = section.get("Chapter") if isinstance(section, dict) else None
    if chapter:
        chapter["content"] = re.sub(r"\]\(\.\./", f"]({REPOSITORY}/", chapter["content"])
        for below in chapter["sub_items"]:
            lead_outside(below)


def main():
    if sys.argv[1:2] == ["supports"]:
        return
    _, book = json.load(sys.stdin)
    for section in book.get("items", book.get("sections", [])):
        lead_outside(section)
    json.dump(book, sys.stdout)


main()
