"""Studies: files that say what to measure, and the plan of runs made from them."""
