"""Advice: on which storage an unmodified program runs fastest, by running it on each of them (`advise`)."""
