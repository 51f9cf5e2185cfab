"""The embedded programs of inference: a cache of keys and values on storage, and the search of vectors."""
