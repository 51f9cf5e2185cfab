"""Whether `tiercel trace explain` says of programs what is wrong with them, on a labelled set of traces."""
