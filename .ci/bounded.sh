# Sourced. `bounded SECONDS COMMAND...` runs a command for so long at most (then it is 124), and has it end with the script: `timeout` alone puts what
# it runs into a process group of its own, which neither Ctrl-C nor the end of whoever started the script reaches.
bounded_pid=

bounded() {
  local code=0
  timeout -k 5 "$@" &
  bounded_pid=$!
  wait "$bounded_pid" || code=$?
  bounded_pid=
  return "$code"
}

# For the script's trap at EXIT.
end_bounded() {
  [ -z "$bounded_pid" ] || kill -- "-$bounded_pid" 2>/dev/null || true
}
trap 'exit 130' INT
trap 'exit 143' TERM
