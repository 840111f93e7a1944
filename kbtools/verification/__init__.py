"""Plan, run, judge and record snippets; bisect a claim over releases."""
