"""From files and runs to records: one package for each user task."""
