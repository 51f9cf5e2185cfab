"""The answer of a comparison (`tiercel.compare`) for people: sentences, a page, a table for the terminal."""
