"""A study without its machine: flows of bytes and operations that share the stages of a topology fairly."""
