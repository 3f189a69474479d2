"""Lazy imports of modules and names."""

import subprocess
import sys

import pytest

from jepatlas.core.lazy import lazy_import


def test_lazy_module_is_imported_at_first_use():
    code = (
        "import sys; from jepatlas.core.lazy import lazy_import; m = lazy_import('no_such_module');"
        "f = lazy_import('fractions'); assert 'fractions' not in sys.modules;"
        "assert f.Fraction(1, 2) * 2 == 1; assert 'fractions' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_missing_module_fails_at_first_use():
    module = lazy_import("no_such_module_at_all")
    with pytest.raises(ModuleNotFoundError):
        _ = module.anything


def test_lazy_package_imports_names_at_first_use():
    code = (
        "import sys, jepatlas.nn; assert 'torch' not in sys.modules;"
        "from jepatlas.nn import MLPConfig; assert MLPConfig.__name__ == 'MLPConfig'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_public_names_of_lazy_packages_are_listed_before_their_import():
    code = (
        "import sys, jepatlas as ja, jepatlas.objectives; assert 'LeJEPA' in dir(jepatlas.objectives);"
        "assert {'check_world', '__doc__'} <= set(dir(ja.testing)); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_unknown_name_raises_attribute_error():
    import jepatlas.nn

    with pytest.raises(AttributeError):
        _ = jepatlas.nn.NoSuchNetwork  # pyright: ignore[reportAttributeAccessIssue]
