"""The five papers that tiercel repeats: what they show, how it is got here, and whether it holds."""
