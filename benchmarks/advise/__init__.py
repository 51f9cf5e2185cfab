"""Is the advice of `tiercel advise` right? Programs advised from one run, then really run so."""
