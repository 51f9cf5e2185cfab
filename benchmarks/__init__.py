"""Speed of tiercel itself. `make bench` runs all of it; nothing here is a test."""
