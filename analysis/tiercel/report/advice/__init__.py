"""Advice for one program, as a page and in the terminal."""
