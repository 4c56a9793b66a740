#!/usr/bin/env bash
# run.sh [BUILD] - libccc_tls with third-party programs: the server of examples/tls with other clients, and its client
# with other servers. TAP on standard output.
#
# Certificates are generated on the fly, servers listen on ports of 127.0.0.1 and are stopped at the end.
set -u
cd "$(dirname "$0")/../.." || exit 1
here=$PWD/tests/tls
build=$(realpath "${1:-build/release}")
server=$build/examples/tls/https_server get=$build/examples/tls/https_get
work=$(mktemp -d)
servers=()
stop() {
    for pid in "${servers[@]}"; do kill "$pid" 2>/dev/null; done
    for pid in "${servers[@]}"; do wait "$pid" 2>/dev/null; done
    rm -rf "$work"
}
trap stop EXIT
if [[ ! -x $server || ! -x $get ]]; then
    echo "1..0 # SKIP $server is not there: OpenSSL's headers were missing (libssl-dev)"
    exit 0
fi
for tool in openssl curl; do
    command -v "$tool" >/dev/null || { echo "1..0 # SKIP $tool is not there: tools/deps.sh test installs it"; exit 0; }
done

n=0 bad=0
# check NAME COMMAND...: the command has to succeed.
check() {
    local name=$1
    shift
    n=$((n + 1))
    if "$@" >"$work/log" 2>&1; then
        echo "ok $n - $name"
    else
        echo "not ok $n - $name"
        sed 's/^/# /' "$work/log" | tail -n 30
        bad=1
    fi
}
skip() { # NAME TOOL
    n=$((n + 1))
    echo "ok $n - $1 # SKIP $2 is not there: tools/deps.sh test installs it"
}

# ---- certificates ----
cd "$work" || exit 1
authority() { # NAME
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "/CN=authority $1" -keyout "$1.key" -out "$1.pem" 2>/dev/null
}
certificate() { # NAME AUTHORITY
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$1" -keyout "$1.key" -out "$1.csr" 2>/dev/null &&
        openssl x509 -req -in "$1.csr" -CA "$2.pem" -CAkey "$2.key" -CAcreateserial -days 2 -out "$1.pem" \
            -extfile <(echo "subjectAltName=DNS:localhost,IP:127.0.0.1") 2>/dev/null
}
authority ca && authority other && certificate localhost ca && certificate second ca && certificate client ca || exit 1
cp localhost.pem chain.pem
cp localhost.key key.pem

port=
start() { # ARGUMENTS...: our server; sets port
    : >server.log
    "$server" chain.pem key.pem "tls://127.0.0.1:0" "$@" >server.log 2>server.err &
    servers+=($!)
    until port=$(sed -n 's/^listening at .*:\([0-9]*\)$/\1/p' server.log) && [[ -n $port ]]; do
        kill -0 "${servers[-1]}" 2>/dev/null || { cat server.err >&2; exit 1; }
        sleep 0.05
    done
}
request() { printf 'GET /%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' "${1:-}"; }
has() { grep -q -- "$@"; }
client() { timeout 60 openssl s_client -connect "127.0.0.1:$port" -servername localhost -CAfile ca.pem -verify_return_error "$@" 2>&1; }

# ---- clients of others ----
start
by_curl() { [[ $(curl -sS --max-time 60 --cacert ca.pem "$@" "https://localhost:$port/") == "hello over TLS" ]]; }
check "curl, TLS 1.3" by_curl --tlsv1.3
check "curl, TLS 1.2" by_curl --tls-max 1.2
check "curl, several requests over one connection" bash -c "curl -sS --max-time 60 --cacert ca.pem https://localhost:$port/{1,20000,3} | wc -c | grep -qx 20004"
check "curl, ten megabytes" bash -c "curl -sS --max-time 60 --cacert ca.pem https://localhost:$port/10000000 | wc -c | grep -qx 10000000"
check "curl refuses it without its authority" bash -c "curl -sS --max-time 60 https://localhost:$port/; [[ \$? == 60 ]]"
check "curl, another name" bash -c "curl -sS --max-time 60 --cacert ca.pem --resolve example.org:$port:127.0.0.1 https://example.org:$port/; [[ \$? == 60 ]]"
s_client() { request | client -ign_eof "$@" | has "hello over TLS"; }
check "openssl s_client, TLS 1.3" s_client -tls1_3
check "openssl s_client, TLS 1.2" s_client -tls1_2
for cipher in TLS_AES_128_GCM_SHA256 TLS_AES_256_GCM_SHA384 TLS_CHACHA20_POLY1305_SHA256; do
    check "openssl s_client, $cipher" s_client -ciphersuites "$cipher"
done
check "openssl s_client, TLS 1.1 is refused" bash -c "! openssl s_client -connect 127.0.0.1:$port -tls1_1 -cipher ALL@SECLEVEL=0 </dev/null"
resumes() {
    { request; sleep 0.3; } | client -ign_eof -sess_out session "$@" | has "^New, TLS" || return
    request | client -ign_eof -sess_in session "$@" | has "^Reused, TLS"
}
check "openssl s_client resumes, TLS 1.3" resumes -tls1_3
check "openssl s_client resumes, TLS 1.2" resumes -tls1_2
check "openssl s_client, ALPN" bash -c "$(declare -f client); port=$port; client -alpn h2,http/1.1 </dev/null | grep -q 'ALPN protocol: http/1.1'"
check "openssl s_client, no common protocol" bash -c "$(declare -f client); port=$port; client -alpn h2 </dev/null | grep -q 'no application protocol'"
renegotiates() { # the client has to be connected before its input ends
    local patience
    for patience in 0.5 2 8; do
        { echo R; sleep $patience; } | client -tls1_2 | has "no renegotiation" && return
    done
    return 1
}
check "openssl s_client, renegotiation is refused" renegotiates
if command -v socat >/dev/null; then
    check "socat" bash -c "$(declare -f request); request | timeout 60 socat -t 10 - OPENSSL:localhost:$port,cafile=ca.pem | grep -q 'hello over TLS'"
else
    skip socat socat
fi
if command -v ncat >/dev/null; then
    check "ncat" bash -c "$(declare -f request); request | timeout 60 ncat --ssl --ssl-verify --ssl-trustfile ca.pem localhost $port | grep -q 'hello over TLS'"
else
    skip ncat ncat
fi
if "${PYTHON:-python3}" -c 'import tlslite' 2>/dev/null; then
    check "tlslite-ng, every version and cipher" "${PYTHON:-python3}" "$here/by_tlslite.py" "$port"
else
    skip tlslite-ng "its module"
fi
check "garbage does no harm" bash -c "head -c 100000 /dev/urandom | timeout 20 bash -c 'cat >/dev/tcp/127.0.0.1/$port' ; true"
check "and it still answers" by_curl

# ---- other certificates while it runs ----
reload() {
    cp second.pem chain.pem && cp second.key key.pem && kill -HUP "${servers[-1]}" || return
    for ((i = 0; i < 200; i++)); do
        client </dev/null | has "subject=CN = second" && return
        sleep 0.05
    done
    return 1
}
check "other certificates by SIGHUP" reload
check "bad ones are not taken" timeout 60 bash -c "echo nonsense >chain.pem; kill -HUP ${servers[-1]}; until grep -q 'were not reloaded' server.err; do sleep 0.05; done"
check "and it goes on with the last" by_curl
stops() {
    kill -TERM "${servers[-1]}" && wait "${servers[-1]}"
}
check "it ends in an orderly way" stops
cp localhost.pem chain.pem
cp localhost.key key.pem

# ---- client certificates ----
start ca.pem
check "curl with a certificate" by_curl --cert client.pem --key client.key
check "curl without one is refused" bash -c "! curl -sS --max-time 60 --cacert ca.pem https://localhost:$port/"
check "our client with a certificate" bash -c "$get localhost:$port/ ca.pem client.pem client.key | grep -q 'hello over TLS'"
check "our client without one is told why" bash -c "! $get localhost:$port/ ca.pem 2>err && grep -q 'certificate required' err"

# ---- servers of others ----
# Not one that the system gives to another program that asks for any, or to a connection.
free_port() {
    port=$(python3 -c '
import random, socket
while True:
    with socket.socket() as s:
        try:
            s.bind(("127.0.0.1", random.randrange(10000, 20000)))
            print(s.getsockname()[1])
            break
        except OSError:
            pass')
}
other() { # COMMAND...: PORT in it is a free port; waits until somebody listens
    free_port
    "${@//PORT/$port}" >other.log 2>&1 &
    servers+=($!)
    until (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do
        kill -0 "${servers[-1]}" 2>/dev/null || { cat other.log >&2; return; }
        sleep 0.05
    done
}
fetches() { "$get" "localhost:$port/" "$@" | has .; }
for version in tls1_2 tls1_3; do
    other openssl s_server -accept PORT -cert localhost.pem -key localhost.key -www -$version
    check "openssl s_server, $version" fetches ca.pem
done
check "its authority is not known" bash -c "! $get localhost:$port/ other.pem 2>err && grep -q 'is not good: unable to get local issuer' err"
check "it has another name" bash -c "! $get 127.0.0.2:$port/ ca.pem 2>err && grep -q 'IP address mismatch' err"
other openssl s_server -accept PORT -cert localhost.pem -key localhost.key -www -Verify 1 -CAfile ca.pem -verify_return_error
check "openssl s_server wants a certificate" fetches ca.pem client.pem client.key
if command -v nginx >/dev/null || [[ -x /usr/sbin/nginx ]]; then
    free_port
    mkdir -p nginx
    head -c 3000000 /dev/zero >nginx/page
    cat >nginx.conf <<EOF
daemon off; worker_processes 1; pid $work/nginx.pid; error_log $work/nginx.log;
events {}
http { access_log off; client_body_temp_path $work/nginx; proxy_temp_path $work/nginx; fastcgi_temp_path $work/nginx; uwsgi_temp_path $work/nginx; scgi_temp_path $work/nginx;
  server { listen 127.0.0.1:$port ssl; ssl_certificate $work/localhost.pem; ssl_certificate_key $work/localhost.key; root $work/nginx; } }
EOF
    chmod -R a+rX "$work"
    PATH=$PATH:/usr/sbin nginx -c "$work/nginx.conf" >other.log 2>&1 &
    servers+=($!)
    until (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do
        kill -0 "${servers[-1]}" 2>/dev/null || { cat other.log nginx.log >&2; break; }
        sleep 0.05
    done
    check "nginx, three megabytes" bash -c "$get localhost:$port/page ca.pem | wc -c | grep -qx 3000000"
else
    skip nginx nginx
fi
if command -v socat >/dev/null; then
    printf 'HTTP/1.0 200 OK\r\n\r\nsocat\n' >answer
    other socat "OPENSSL-LISTEN:PORT,reuseaddr,fork,cert=$work/localhost.pem,key=$work/localhost.key,verify=0" \
        "SYSTEM:cat $work/answer"
    check "socat as the server" bash -c "$get localhost:$port/ ca.pem | grep -qx socat"
else
    skip "socat as the server" socat
fi

echo "1..$n"
exit $bad
