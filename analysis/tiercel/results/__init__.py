"""Results: raw folders of runs, the tables made from them, and the dataset."""
