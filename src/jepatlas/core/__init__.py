"""What every room speaks: contracts, records, seeds, statistics, linear fits, arrays and files."""
