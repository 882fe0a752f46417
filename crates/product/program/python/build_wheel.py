"""Builds this package: a PEP 517 backend that needs nothing but Python.

The package is one file. Backends of others would have to be downloaded first, which a computer in a plant cannot; pip
takes this one as it is, with no network.
"""

import base64
import hashlib
import io
import os
import re
import tarfile
import zipfile

_PACKAGED = ("bumpless/__init__.py",)
_SOURCES = ("pyproject.toml", "build_wheel.py") + _PACKAGED


def _told(key):
    """A text of the table [project], as it stands in pyproject.toml."""
    with open("pyproject.toml", encoding="utf-8") as file:
        found = re.search(rf'^{key} = (?:{{ text = )?"([^"]*)"', file.read(), re.MULTILINE)
    return found.group(1)


def _named():
    return f"{_told('name')}-{_told('version')}"


def _metadata():
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {_told('name')}",
        f"Version: {_told('version')}",
        f"Summary: {_told('description')}",
        f"License: {_told('license')}",
        f"Requires-Python: {_told('requires-python')}",
        "Provides-Extra: numpy",
        "Requires-Dist: numpy; extra == 'numpy'",
    ]
    return "".join(line + "\n" for line in lines).encode()


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Writes the wheel, the same to the byte whenever it is built, and tells its name."""
    about = f"{_named()}.dist-info"
    contents = {}
    for path in _PACKAGED:
        with open(path, "rb") as file:
            contents[path] = file.read()
    contents[f"{about}/METADATA"] = _metadata()
    tag = "py3-none-any"
    wheel = f"Wheel-Version: 1.0\nGenerator: build_wheel\nRoot-Is-Purelib: true\nTag: {tag}\n"
    contents[f"{about}/WHEEL"] = wheel.encode()
    record = ""
    for path, content in contents.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record += f"{path},sha256={digest},{len(content)}\n"
    contents[f"{about}/RECORD"] = f"{record}{about}/RECORD,,\n".encode()
    name = f"{_named()}-{tag}.whl"
    with zipfile.ZipFile(os.path.join(wheel_directory, name), "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in contents.items():
            entry = zipfile.ZipInfo(path)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content)
    return name


def build_sdist(sdist_directory, config_settings=None):
    """Writes the sources, and tells the archive's name."""
    name = f"{_named()}.tar.gz"
    with tarfile.open(os.path.join(sdist_directory, name), "w:gz", format=tarfile.PAX_FORMAT) as archive:
        for path in _SOURCES:
            archive.add(path, f"{_named()}/{path}")
        content = _metadata()
        entry = tarfile.TarInfo(f"{_named()}/PKG-INFO")
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    return name
