#!/bin/sh
# Uploads a wheel, runs a flow that uses it, uploads version 2 and runs the flow again.
# Needs pyoco-client and python3 on the PATH, and a server whose workers install wheels (`pyoco-server up` does).
set -eu
here=$(dirname "$0")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

run() {
  run=$(pyoco-client submit-yaml --workflow-file "$here/flow.yaml" --flow-name wheel --tag default | sed -n 's/.*"run_id": "\([^"]*\)".*/\1/p')
  pyoco-client watch "$run" --until-terminal --output status >/dev/null
  pyoco-client get "$run" --records | grep -o -e '"output": "[^"]*"' -e '"wheels": \[[^]]*\]'
}

for version in 1.0.0 2.0.0; do
  echo "== greeter $version is built and uploaded"
  wheel=$(python3 "$here/build_wheel.py" "$version" "$folder")
  pyoco-client wheel-upload --wheel-file "$wheel"
  echo "== a run with it"
  run
done

echo "== what there is now"
pyoco-client wheels
