"""Apprise in one process, for the benchmark: each line of stdin goes to all addresses that are its arguments."""

import sys

import apprise

service = apprise.Apprise()
for address in sys.argv[1:]:
    assert service.add(address), address
print("ready", flush=True)
for line in sys.stdin:
    print("sent" if service.notify(body=line.strip()) else "failed", flush=True)
