"""What continuous integration asks: which snippets, on which machine, and what became of them."""
