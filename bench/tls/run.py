#!/usr/bin/env python3
"""run.py [--build DIR] [--rounds N] [--idle N] [--only NAMES] - TLS servers side by side: ours (examples/tls/https_server), nginx with the
same OpenSSL, and Go.

Each server gets one CPU, the client the other one. What is compared is the server's CPU time: for a full handshake with one request, for one that
resumes a session, and for a megabyte of a page of 16 MB; and what idle connections take of its memory. A round measures all of them one after the other;
the table has the least of all rounds."""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
PAGE = 16 * 1024 * 1024


def run(*command, **options):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, **options).stdout


def make_certificates(work):
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    run("openssl", "req", "-x509", *key, "-days", "2", "-subj", "/CN=authority", "-keyout", "ca.key", "-out", "ca.pem", cwd=work)
    run("openssl", "req", *key, "-subj", "/CN=localhost", "-keyout", "key.pem", "-out", "csr", cwd=work)
    with open(work + "/names", "w") as f:
        f.write("subjectAltName=DNS:localhost\n")
    run("openssl", "x509", "-req", "-in", "csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-out", "cert.pem",
        "-extfile", "names", cwd=work)


def family(pid):
    """The process and its children: nginx works in a child."""
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return [pid] + [int(word) for word in f.read().split()]


def cpu_seconds(pid):
    """Time on a CPU, of all threads."""
    total = 0
    for each in children[pid]:
        for task in os.listdir(f"/proc/{each}/task"):
            with open(f"/proc/{each}/task/{task}/schedstat") as f:
                total += int(f.read().split()[0])
    return total / 1e9


def rss_kb(pid):
    total = 0
    for each in children[pid]:
        with open(f"/proc/{each}/status") as f:
            total += sum(int(line.split()[1]) for line in f if line.startswith("VmRSS:"))
    return total


children = {}


def start_ours(work, build):
    env = dict(os.environ, CC_WORKERS="1")
    p = subprocess.Popen(["taskset", "-c", "0", build + "/examples/tls/https_server", "cert.pem", "key.pem", "tls://127.0.0.1:0"], cwd=work, env=env,
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return p, int(p.stdout.readline().rsplit(":", 1)[1])


def start_go(work, build):
    if not os.path.exists(work + "/go_server"):
        shutil.copy(ROOT + "/bench/tls/rivals/server.go", work)
        run("go", "build", "-o", "go_server", "server.go", cwd=work, env=dict(os.environ, GOFLAGS="-mod=mod", GO111MODULE="off"))
    env = dict(os.environ, GOMAXPROCS="1")
    p = subprocess.Popen(["taskset", "-c", "0", "./go_server", "cert.pem", "key.pem"], cwd=work, env=env, stdout=subprocess.PIPE, text=True)
    return p, int(p.stdout.readline().rsplit(":", 1)[1])


def start_nginx(work, build):
    port = 24430 + os.getpid() % 1000
    pages = work + "/pages"
    if not os.path.exists(pages):
        os.mkdir(pages)
        with open(f"{pages}/{PAGE}", "wb") as f:
            f.write(bytes(PAGE))
    paths = " ".join(f"{name}_temp_path {work};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    with open(work + "/nginx.conf", "w") as f:
        f.write(f"""daemon off; worker_processes 1; pid {work}/nginx.pid; error_log {work}/nginx.log; worker_rlimit_nofile 20000; user root;
events {{ worker_connections 15000; }}
http {{ access_log off; keepalive_timeout 3600; keepalive_requests 1000000; {paths}
  server {{ listen 127.0.0.1:{port} ssl backlog=4096; ssl_certificate {work}/cert.pem; ssl_certificate_key {work}/key.pem; ssl_session_tickets on; ssl_protocols TLSv1.2 TLSv1.3;
    root {pages}; location = / {{ return 200 "hello over TLS\\n"; }} }} }}
""")
    env = dict(os.environ, PATH=os.environ["PATH"] + ":/usr/sbin")
    p = subprocess.Popen(["taskset", "-c", "0", "nginx", "-c", work + "/nginx.conf"], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(1)
    return p, port


SERVERS = {"libccc": start_ours, "nginx": start_nginx, "Go": start_go}


def load(work, port, *what):
    return float(run("taskset", "-c", "1", work + "/load", str(port), work + "/ca.pem", *map(str, what)))


def measure(work, build, name, options):
    p, port = SERVERS[name](work, build)
    try:
        load(work, port, "handshakes", 50)
        children[p.pid] = family(p.pid)
        figures = {}
        for what, count, arguments in (("handshake", options.handshakes, ["handshakes"]), ("resumed", options.handshakes, ["resumed"]),
                                       ("megabyte", options.pages, ["bytes"])):
            before = cpu_seconds(p.pid)
            seconds = load(work, port, arguments[0], count, *([PAGE] if what == "megabyte" else []))
            used = cpu_seconds(p.pid) - before
            units = count * PAGE / 1e6 if what == "megabyte" else count
            figures[what] = used / units * 1e6
            figures[what + "/s"] = units / seconds
        return figures
    finally:
        p.terminate()
        p.wait()


def idle(work, build, name, count):
    p, port = SERVERS[name](work, build)
    client = None
    try:
        load(work, port, "handshakes", 50)
        children[p.pid] = family(p.pid)
        before = rss_kb(p.pid)
        client = subprocess.Popen([work + "/load", str(port), work + "/ca.pem", "idle", str(count)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  text=True)
        while client.stdout.readline().strip() != "ready":
            if client.poll() is not None:
                raise RuntimeError("the client has failed")
        time.sleep(1)
        return (rss_kb(p.pid) - before) * 1024 / count
    finally:
        if client is not None:
            client.stdin.close()
            client.wait()
        p.terminate()
        p.wait()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default=ROOT + "/build/release")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--handshakes", type=int, default=1000)
    parser.add_argument("--pages", type=int, default=30)
    parser.add_argument("--idle", type=int, default=10000, help="connections; 0: not measured")
    parser.add_argument("--only", default=",".join(SERVERS))
    options = parser.parse_args()
    names = [name for name in options.only.split(",") if name != "nginx" or shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin")]
    names = [name for name in names if name != "Go" or shutil.which("go")]
    with tempfile.TemporaryDirectory() as work:
        os.chmod(work, 0o755)
        make_certificates(work)
        run("cc", "-O2", ROOT + "/bench/tls/load.c", "-o", work + "/load", "-lssl", "-lcrypto")
        best = {name: {} for name in names}
        for _ in range(options.rounds):
            for name in names:
                for what, figure in measure(work, options.build, name, options).items():
                    better = max if what.endswith("/s") else min
                    best[name][what] = better(figure, best[name].get(what, figure))
        memory = {name: idle(work, options.build, name, options.idle) if options.idle else 0 for name in names}
    print("| | " + " | ".join(names) + " |\n|---|" + "---|" * len(names))
    rows = (("full handshake and request, µs of the server's CPU", "handshake", 0), ("the same, a session resumed", "resumed", 0),
            ("a megabyte, µs of the server's CPU", "megabyte", 0), ("handshakes a second, one client", "handshake/s", 0),
            ("megabytes a second, one client", "megabyte/s", 0))
    for title, what, digits in rows:
        print(f"| {title} | " + " | ".join(f"{best[name][what]:.{digits}f}" for name in names) + " |")
    if options.idle:
        print(f"| memory of each of {options.idle} idle connections, KB | " + " | ".join(f"{memory[name] / 1000:.1f}" for name in names) + " |")


if __name__ == "__main__":
    sys.exit(main())
