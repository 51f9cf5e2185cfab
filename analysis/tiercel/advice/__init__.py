"""Advice: where the files of one unmodified program belong, measured by replaying what it did (`advise`)."""
