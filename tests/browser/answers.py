#!/usr/bin/env python3
"""answers.py BUILD - what the live page serves beside the page: each answer is JSON as cc_view(3) describes it, and /metrics is OpenMetrics text, by the
parser of prometheus_client; TAP.
"""
import json
import os
import socket
import sys
import time

sys.path.insert(0, os.path.dirname(__file__))
from hangs import Program  # noqa: E402

KEYS = {
    "stats": ["pid", "uptime_ns", "spawned", "finished", "switches", "parks_by", "workers"],
    "groups": ["fibers_total", "groups", "threads", "fibers_left_out"],
    "fibers?like=0.1": ["fibers", "count"],
    "fiber?id=0.1": ["fiber", "state", "frames", "could_wake", "waited_for_by"],
    "scopes": ["scopes"],
    "channels": ["channels"],
    "wrong": ["wrong", "missing"],
    "unreachable": ["count", "why_not", "fibers"],
    "dump.json": ["ccc_dump", "fibers", "stacks"],
}


def get(address, path, accept=200):
    """The type and the body of an answer."""
    host, _, token = address[len("http://"):].partition("/?t=")
    name, port = host.split(":")
    with socket.create_connection((name, int(port)), timeout=180) as s:
        s.sendall(f"GET /{path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
        data = b""
        while part := s.recv(1 << 16):
            data += part
    head, _, body = data.partition(b"\r\n\r\n")
    fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
    if int(head.split()[1]) != accept:
        raise RuntimeError(f"/{path}: {head.decode()}\n{body.decode()}")
    if int(fields["Content-Length"]) != len(body):
        raise RuntimeError(f"/{path}: {len(body)} bytes, and Content-Length says {fields['Content-Length']}")
    return fields["Content-Type"], body


def check_json(address):
    for path, keys in KEYS.items():
        kind, body = get(address, path)
        value = json.loads(body)
        missing = [k for k in keys if k not in value]
        if missing or not kind.startswith("application/json"):
            raise RuntimeError(f"/{path}: {kind}, without {missing}: {value}")


def check_metrics(address, parse):
    kind, body = get(address, "metrics")
    if not kind.startswith("application/openmetrics-text; version=1.0.0"):
        raise RuntimeError(kind)
    families = {f.name: f for f in parse(body.decode())}
    values = {(s.name, tuple(sorted(s.labels.items()))): s.value for f in families.values() for s in f.samples}
    if values[("ccc_spawned_total", ())] != 2 or values[("ccc_fibers", (("state", "waiting"),))] != 2:
        raise RuntimeError(f"wrong numbers: {values}")
    for name in ("ccc_parks", "ccc_workers", "ccc_worker_turns", "ccc_worker_cpu_seconds", "ccc_channel_length"):
        if name not in families:
            raise RuntimeError(f"{name} is missing")


def main():
    program = Program(os.path.join(os.path.realpath(sys.argv[1]), "examples/hangs/lock_order"))
    bad = 0
    try:
        until = time.monotonic() + 180
        while '"cycle"' not in get(program.address, "wrong")[1].decode() and time.monotonic() < until:
            time.sleep(0.1)
        print("1..2")
        try:
            check_json(program.address)
            print("ok 1 - JSON", flush=True)
        except Exception as error:  # pylint: disable=broad-except
            bad = 1
            print(f"not ok 1 - JSON\n# {error!r}", flush=True)
        try:
            from prometheus_client.openmetrics.parser import text_string_to_metric_families
        except ImportError:
            print("ok 2 - metrics # SKIP there is no parser: tools/deps.sh test installs it, or pip install prometheus_client; PYTHON=... names its Python")
            return bad
        try:
            check_metrics(program.address, text_string_to_metric_families)
            print("ok 2 - metrics, by prometheus_client", flush=True)
        except Exception as error:  # pylint: disable=broad-except
            bad = 1
            print(f"not ok 2 - metrics\n# {error!r}", flush=True)
    finally:
        program.end()
    return bad


if __name__ == "__main__":
    sys.exit(main())
