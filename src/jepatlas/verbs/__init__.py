"""What the command line can do, one file a verb. Each has an options dataclass and a `main(words) -> exit code`."""
