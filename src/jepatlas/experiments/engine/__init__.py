"""Machinery shared by all experiments: trials and rules, running, publishing, and tables over seeds."""
