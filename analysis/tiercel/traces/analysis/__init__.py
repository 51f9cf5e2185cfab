"""What can be asked of a trace: one theme a file, each function takes an IOFrame first."""
