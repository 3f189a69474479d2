"""The functions of the Python front door. Use them as `import jepatlas as ja`."""
