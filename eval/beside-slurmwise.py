#!/usr/bin/env python3
"""What slurmwise 0.1.0 says of labelled cases, counted as `jobwise eval --baseline` counts.

    PYTHONPATH=SLURMWISE/src eval/beside-slurmwise.py eval/reports.jsonl eval/reports-later.jsonl

It gets the state, both logs and the reason of a pending job, and is held to its own 18 kinds
(family_map.json). Its answer that Python raised some exception counts as no name, so it is never
held against it.
"""

import collections
import json
import pathlib
import sys

from slurmwise.backends.base import JobInfo
from slurmwise.classify import classify

KINDS = json.loads((pathlib.Path(__file__).parent / "family_map.json").read_text())
KINDS["none"] = "none"
NAMES_NOTHING = {"ok": "none", "running": "none", "unknown": "unknown", "python_exception": "unknown"}


def answer(case):
    """The kind that it puts first, and how sure it is."""
    record = case["sacct"]
    state = case.get("state") or record.get("State") or "UNKNOWN"
    reason = record.get("Reason") or "None"
    out = (case.get("log_out") or "") + ("" if reason == "None" else f"\n({reason})")
    job = JobInfo(str(record.get("JobID", "")), state=state)
    first = classify(job, stderr=case.get("log_err") or "", stdout=out)[0]
    return NAMES_NOTHING.get(first.kind, first.kind), first.confidence


def main():
    cases, right, wrong_names, sure, sure_right = collections.Counter(), collections.Counter(), 0, 0, 0
    for path in sys.argv[1:]:
        for line in pathlib.Path(path).read_text().splitlines():
            case = json.loads(line)
            label = case.get("expected") or case["family"]
            accepted = {KINDS.get(name) for name in [label, *(case.get("also") or [])]} - {None}
            kind, confidence = answer(case)
            row = case["difficulty"] if KINDS.get(label) else "of no kind"
            named = kind not in ("none", "unknown")
            good = kind in accepted or (row == "of no kind" and not named)
            cases[row] += 1
            right[row] += good
            if named and confidence >= 0.85:
                sure += 1
                sure_right += good
    for row in ("easy", "medium", "hard"):
        print(f"{row}: {right[row]} of {cases[row]} right")
    wrong = cases["of no kind"] - right["of no kind"]
    print(f"of no kind: {wrong} of {cases['of no kind']} given a wrong name")
    print(f"stated at 0.85 or more: {sure_right} of {sure} right")


if __name__ == "__main__":
    main()
