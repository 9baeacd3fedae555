#!/usr/bin/env python3
"""Renames folders and nodes of a lab in a recording to what a site would call them.

usage: rename.py IN.json OUT.json OLD=NEW...    (longest names first; sizes follow)
"""
import json
import sys

source, out, *renames = sys.argv[1:]
with open(source) as file:
    text = file.read()
for rename in renames:
    old, new = rename.split("=")
    text = text.replace(old, new)
recording = json.loads(text)


def length(blob):
    (kind, content), = blob.items()
    return len(content.encode() if kind == "text" else content)


for kept in recording["files"]:
    outcome = kept["outcome"]
    content = outcome.get("content") if isinstance(outcome, dict) else None
    if content and len(content["ranges"]) == 1:
        content["size"] = length(recording["blobs"][content["ranges"][0]["blob"]])
with open(out, "w") as file:
    json.dump(recording, file, indent=1, ensure_ascii=False, sort_keys=True)
    file.write("\n")
