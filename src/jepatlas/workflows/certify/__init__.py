"""Certificates of latents as records: from files or runs to verdicts, what they say together, and charts."""

from jepatlas.workflows.certify.certificate import Certificate, certificate, certify_file

__all__ = ["Certificate", "certificate", "certify_file"]
