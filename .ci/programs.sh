#!/usr/bin/env bash
# An interpreter of Python with the programs that `bumpless wan programs` drives: c104 (IEC 60870-5-104) and pymodbus, which are
# other people's and run in processes of their own. Prints where it is; ends with 77 where they cannot be had.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${CARGO_TARGET_DIR:-target}/programs
python=$folder/bin/python
if ! "$python" -c 'import c104, pymodbus' 2>/dev/null; then
  rm -rf "$folder"
  python3 -m venv "$folder" >&2 &&
    "$folder/bin/pip" install --quiet --disable-pip-version-check c104==2.2.1 pymodbus==3.16.1 >&2 ||
    { echo "no c104 and pymodbus: the rows of IEC 60870-5-104 and Modbus TCP are not run" >&2; exit 77; }
fi
realpath --no-symlinks "$python"
