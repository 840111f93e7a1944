"""One result, many printers. Each takes results and returns text; none prints or exits."""
