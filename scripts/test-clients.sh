#!/usr/bin/env bash
# Installs the official MCP clients, the conformance suite and the servers that channels are tried against into .tools/,
# in the versions that crates/deskbell/tests/clients and crates/deskbell/tests/servers pin. Quick when everything is
# there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

clients=crates/deskbell/tests/clients

# Runs the rest of its arguments in the folder .tools/$1, unless what was installed there came from the same file $2.
install() {
    local folder=.tools/$1 from=$2
    shift 2
    mkdir -p "$folder"
    if cmp -s "$from" "$folder/installed"; then
        return
    fi
    echo "installing $(basename "$folder")"
    "$@" "$folder"
    cp "$from" "$folder/installed"
}

install_node() {
    cp "$clients"/node/package.json "$clients"/node/package-lock.json "$1"
    (cd "$1" && npm ci --silent --no-audit --no-fund)
    # The suite needs a newer Node than many systems have, so one comes with it.
    "$1/node_modules/node/bin/node" --version >/dev/null
}

install_python() {
    python3 -m venv --clear "$2"
    # Most of it is never imported, so nothing is compiled before it is.
    "$2/bin/pip" install --quiet --disable-pip-version-check --no-compile --requirement "$1"
}

install node "$clients/node/package-lock.json" install_node
for generation in 1 2; do
    requirements=$clients/python/requirements-$generation.txt
    install "python-$generation" "$requirements" install_python "$requirements"
done
servers=crates/deskbell/tests/servers/requirements.txt
install servers "$servers" install_python "$servers"
