"""What every page that tiercel writes shares: looks, tables, words, how a template becomes a page."""
