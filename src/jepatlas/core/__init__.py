"""Contracts, records, seeding, statistics, linear fits, arrays and files, used by all other packages."""
