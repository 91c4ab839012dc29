#!/usr/bin/env bash
# `make up`: starts the server, runs examples/hello, and stays up. HOST and PORT choose the address.
set -euo pipefail

server=
code=
pass() { # SIGNAL CODE: tells the server to stop; the first CODE is this script's
  code=${code:-$2}
  [ -z "$server" ] || kill -s "$1" "$server" 2>/dev/null || true
}
ended() { # waits for the server's end and gives its exit code; a signal may end a wait, but not this one
  while kill -0 "$server" 2>/dev/null; do wait "$server" || true; done
  wait "$server"
}
finish() {
  local last=$?
  [ -n "$code" ] || pass TERM "$last"
  [ -z "$server" ] || ended || true
  wait
  exit "$code"
}
trap finish EXIT
trap 'pass INT 130' INT
trap 'pass TERM 143' TERM HUP

root=$(dirname "$0")/..
cd "$root"

HOST=${HOST:-127.0.0.1}
PORT=${PORT:-8000}
DATA=${PYOCO_DATA_DIR:-.pyoco}
BIN=${BIN:-target/debug}
PYTHON=${PYTHON:-python3}
LOG=$DATA/server.log
PATIENCE=60

mkdir -p -m 700 "$DATA"
# The lines of the tasks are picked out of the log below. python3 is the default anyway, and a .env file may name another.
export PYOCO_LOG_FORMAT=json
if [ "$PYTHON" != python3 ]; then export PYOCO_PYTHON="${PYOCO_PYTHON:-$PYTHON}"; fi

# The server speaks through a pipe: only its own word says that it is up, and where. It has a process group of its own
# (set -m), so that a Ctrl-C reaches it once, through this script: a second one means that it has to hurry.
pipe=$(mktemp -u "$DATA/says.XXXXXX")
mkfifo -m 600 "$pipe"
exec 4<>"$pipe" 3<"$pipe"
rm "$pipe"
set -m
"$BIN/pyoco-server" up --host "$HOST" --port "$PORT" --data-dir "$DATA" --flows examples \
  2>&4 >>"$LOG" </dev/null 3<&- 4>&- &
server=$!
set +m
exec 4>&-

url=
until [ -n "$url" ]; do
  if IFS= read -r -t "$PATIENCE" line <&3; then
    printf '%s\n' "$line" >&2
    case $line in *" is up: "*) url=${line##* is up: } ;; esac
  elif [ $? -gt 128 ]; then
    echo "the server has not come up within $PATIENCE seconds; its log is $LOG" >&2
    pass KILL 1
    exit 1
  else
    ended && exit 1 || exit $? # it has said why
  fi
done
if [ -n "$code" ]; then # told to stop while the server could not hear it yet
  pass TERM "$code"
  exit "$code"
fi
# The rest of its greeting first, then whatever it says later.
page=
while [[ $line != *Ctrl-C* ]] && IFS= read -r -t 1 line <&3; do
  printf '%s\n' "$line" >&2
  case $line in *"dashboard http"*) page=yes ;; esac
done
(trap '' INT TERM HUP && exec cat <&3 >&2) &
exec 3<&-
url=${url/\/\/0.0.0.0:///127.0.0.1:}
url=${url/\/\/\[::\]:///[::1]:}
page=${page:+$url/}

client() { "$BIN/pyoco-client" --server "$url" "$@"; }

echo
echo "== examples/hello: five tasks, three of them side by side, one of them retried"
run=$(client submit --flow-name hello --param name=you | sed 's/.*"run_id": "\([^"]*\)".*/\1/')
client watch "$run" --output status --until-terminal --timeout-sec "$PATIENCE"
[ -z "$code" ] || exit "$code"
client get "$run" --records | "$PYTHON" -c '
import json, sys

run = json.load(sys.stdin)
records = run["task_records"]
print("\n== what the tasks printed")
for line in open(sys.argv[1], encoding="utf-8", errors="replace"):
    # The log may be an old one, with lines of other runs and of other forms.
    event = json.loads(line) if run["run_id"] in line and line.startswith("{") else {}
    if event.get("logger") == "pyoco_server.task" and event.get("run_id") == run["run_id"]:
        print("  {task:<10} {message}".format(**event))
if run["status"] == "COMPLETED":
    print("\n== its result\n ", records["report"]["output"])
else:
    print("\n== it is", run["status"])
    print("  error:", run["error"])
    for task, record in records.items():
        if record.get("error"):
            print("  {:<10} {}".format(task, record["error"]))
' "$LOG"
cat <<NEXT

The server stays up at $url (log: $LOG). Try, in another terminal:
  $BIN/pyoco-client --server $url submit --flow-name hello --param name=Ada
  $BIN/pyoco-client --server $url list --output table
  $BIN/pyoco-client --server $url get $run --records
  curl $url/workers
  open ${page:-$url/docs}
Stop it with Ctrl-C.
NEXT
ended
