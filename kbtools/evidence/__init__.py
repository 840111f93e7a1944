"""Evidence: rows that runs wrote, and what follows from them: verdicts, states, the board."""
