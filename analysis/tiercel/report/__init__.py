"""The report: figures, findings, one HTML file that opens offline, and a summary for the terminal."""
