"""The checklist of the first day on a machine: ``tiercel site check SITE --submit``.

Jobs go the way that a study's go (Snakemake, the site's profile, its scheduler, its launcher), and each looks
at what a study relies on. What they found becomes the site's facts (site.facts).
"""
