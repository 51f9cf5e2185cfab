"""Statistics: summaries, comparisons, noise floors and the decision to repeat; pure functions."""
