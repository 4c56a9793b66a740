#!/usr/bin/env bash
# run.sh [BUILD] - the recipes of examples/recipes, each with a hundred fibers on two workers against a real server; and
# iperf3 through the proxy of the examples. TAP on standard output.
#
# The servers are started in a temporary folder, on Unix sockets and on ports of 127.0.0.1, and stopped at the end.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=$(realpath "${1:-build/release}")
work=$(mktemp -d)
chmod 755 "$work"
servers=()
stop() {
    for pid in "${servers[@]}"; do kill "$pid" 2>/dev/null; done
    for pid in "${servers[@]}"; do wait "$pid" 2>/dev/null; done
    rm -rf "$work"
}
trap stop EXIT

n=0 bad=0
# report STATUS NAME LOG
report() {
    n=$((n + 1))
    if (($1 == 0)); then
        echo "ok $n - $2"
    else
        echo "not ok $n - $2"
        sed 's/^/# /' "$3" | tail -n 40
        bad=1
    fi
}

# as USER: sets `as`, which a command is run by: some servers refuse to run as root.
as() {
    as=()
    ((EUID != 0)) || as=(setpriv --reuid "$1" --regid "$1" --clear-groups)
}

# folder NAME USER: one that the server may write to.
folder() {
    mkdir "$work/$1"
    ((EUID != 0)) || chown "$2:$2" "$work/$1"
}

# until_up PID COMMAND...: waits until the command succeeds, as long as the server lives.
until_up() {
    local pid=$1
    shift
    while ! "$@" >/dev/null 2>&1; do
        kill -0 "$pid" 2>/dev/null || return 1
        sleep 0.1
    done
}

# lacks NAME FILE...: the recipe is skipped, because a file is not there.
lacks() {
    local name=$1 file
    shift
    for file in "$@"; do
        [[ -e $file ]] && continue
        n=$((n + 1))
        echo "ok $n - $name # SKIP $file is not there: tools/deps.sh test installs it"
        return 0
    done
    return 1
}

# recipe NAME LIBRARIES... -- ARGUMENTS...: builds and runs it; at least `least` fibers have to be inside at a time.
least=30
recipe() {
    local name=$1 flags=() log=$work/$1.log
    shift
    while [[ $1 != -- ]]; do
        flags+=("$1")
        shift
    done
    shift
    "${CC:-cc}" -std=gnu11 -O1 -g -Wall -Wextra -Werror -Iinclude "examples/recipes/$name.c" -o "$work/bin-$name" "$build/libccc.a" -pthread \
        "${flags[@]}" >"$log" 2>&1 &&
        CC_WORKERS=2 timeout 300 "$work/bin-$name" "$@" >"$log" 2>&1 &&
        awk -v least="$least" '/ answered, / { most = $(NF - 3) } END { exit !(most >= least) }' "$log"
    report $? "$name: $(tail -n 1 "$log")" "$log"
}

pkg() { pkg-config --cflags --libs "$1"; }

pid=
start() { # start LOG COMMAND...
    local log=$1
    shift
    "$@" >>"$log" 2>&1 &
    pid=$!
    servers+=("$pid")
}

# ---- without a server ----
lacks sqlite /usr/include/sqlite3.h || recipe sqlite $(pkg sqlite3) -- "$work/squares.db"

lacks sqlite_island /usr/include/sqlite3.h || recipe sqlite_island $(pkg sqlite3) --

lacks cares /usr/include/ares.h || recipe cares -lcares --

# ---- PostgreSQL ----
bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -n 1)
if ! lacks libpq /usr/include/postgresql/libpq-fe.h "${bin:-/usr/lib/postgresql}/postgres"; then
    folder pg postgres
    as postgres
    "${as[@]}" "$bin/initdb" -D "$work/pg/data" -A trust -U postgres --no-sync >"$work/pg.log" 2>&1
    start "$work/pg.log" "${as[@]}" "$bin/postgres" -D "$work/pg/data" -k "$work/pg" -c listen_addresses= -c max_connections=120 -c fsync=off
    until_up "$pid" "${as[@]}" "$bin/psql" -h "$work/pg" -d postgres -c 'select 1' || cat "$work/pg.log" >&2
    recipe libpq $(pkg libpq) -- "host=$work/pg dbname=postgres user=postgres"
fi

# ---- Redis ----
if ! lacks hiredis /usr/include/hiredis/hiredis.h /usr/bin/redis-server; then
    folder redis redis
    as redis
    start "$work/redis.log" "${as[@]}" redis-server --port 0 --unixsocket "$work/redis/socket" --unixsocketperm 777 --save '' --dir "$work/redis"
    until_up "$pid" redis-cli -s "$work/redis/socket" ping || cat "$work/redis.log" >&2
    recipe hiredis $(pkg hiredis) -- "$work/redis/socket"
fi

# ---- MariaDB ----
if ! lacks mariadb /usr/include/mariadb/mysql.h /usr/sbin/mariadbd; then
    folder db mysql
    as mysql
    "${as[@]}" mariadb-install-db --no-defaults --datadir="$work/db/data" --auth-root-authentication-method=normal --skip-test-db >"$work/db.log" 2>&1
    start "$work/db.log" "${as[@]}" mariadbd --no-defaults --datadir="$work/db/data" --socket="$work/db/socket" --skip-networking --back-log=500 \
        --skip-grant-tables --innodb-flush-log-at-trx-commit=0 --pid-file="$work/db/pid"
    until_up "$pid" mariadb-admin --no-defaults --socket="$work/db/socket" ping || cat "$work/db.log" >&2
    recipe mariadb $(pkg libmariadb) -- "$work/db/socket"
fi

# ---- nginx, with and without TLS ----
nginx_conf() { # nginx_conf PORT TLS_PORT
    cat <<END
daemon off; worker_processes 1; pid $work/nginx/pid; error_log stderr warn;
events { worker_connections 1024; }
http {
    access_log off; limit_rate 100k; root $work/nginx/html;
    client_body_temp_path $work/nginx/body; proxy_temp_path $work/nginx/proxy; fastcgi_temp_path $work/nginx/fastcgi;
    uwsgi_temp_path $work/nginx/uwsgi; scgi_temp_path $work/nginx/scgi;
    server { listen 127.0.0.1:$1; listen 127.0.0.1:$2 ssl; ssl_certificate $work/ca.pem; ssl_certificate_key $work/key.pem; }
}
END
}
nginx_up() { (exec 3<>"/dev/tcp/127.0.0.1/$http") 2>/dev/null; }
if ! lacks "curl and openssl" /usr/sbin/nginx /usr/include/openssl/ssl.h "$(compgen -G '/usr/include/*/curl/curl.h' | head -n 1 || echo curl/curl.h)"; then
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$work/key.pem" -out "$work/ca.pem" -days 2 \
        -subj /CN=localhost -addext subjectAltName=DNS:localhost >"$work/nginx.log" 2>&1
    mkdir "$work/nginx" "$work/nginx/html"
    head -c 20000 /dev/zero | tr '\0' x >"$work/nginx/html/index.html"
    for attempt in 1 2 3 4 5 6 7 8; do # until two ports are free
        http=$((20000 + RANDOM % 10000))
        nginx_conf "$http" $((http + 1)) >"$work/nginx/conf"
        start "$work/nginx.log" /usr/sbin/nginx -p "$work/nginx" -c "$work/nginx/conf"
        until_up "$pid" nginx_up && break
    done
    recipe curl_easy $(pkg libcurl) -- "http://127.0.0.1:$http/"
    recipe curl_multi $(pkg libcurl) -- "http://127.0.0.1:$http/"
    recipe curl_keys $(pkg libcurl) -- "http://127.0.0.1:$http/"
    recipe openssl $(pkg openssl) -- 127.0.0.1 $((http + 1)) "$work/ca.pem"
fi

# ---- iperf3, through the proxy of the examples, in both directions; a fixed number of bytes, however long they take ----
through() { # LOG OPTIONS...
    local log=$1 attempt
    shift
    for ((attempt = 0; attempt < 50; attempt++)); do # until both listen, and the server has forgotten the last one
        timeout 120 iperf3 -c 127.0.0.1 -p "$front" -P 4 -n 64M -J "$@" >"$log" 2>&1
        grep -q '"sum_received"' "$log" && ! grep -q '"error"' "$log" && return # its status is 0 whatever happens
        kill -0 "$iperf_pid" 2>/dev/null && kill -0 "$proxy_pid" 2>/dev/null || return
        sleep 0.2
    done
    return 1
}
rate() { awk '/"sum_received"/ { found = 1 } found && /"bits_per_second"/ { printf "%.0f Mbit/s", $2 / 1e6; exit }' "$1"; }
if ! lacks iperf3 "$(command -v iperf3 || echo iperf3)" "$build/examples/proxy"; then
    for attempt in 1 2 3 4 5 6 7 8; do # until two ports are free
        front=$((10000 + RANDOM % 4000 * 2)) # below those that the system chooses, as for nginx
        start "$work/iperf3.log" iperf3 -s -B 127.0.0.1 -p $((front + 1))
        iperf_pid=$pid
        start "$work/proxy.log" "$build/examples/proxy" "tcp://127.0.0.1:$front" "tcp://127.0.0.1:$((front + 1))"
        proxy_pid=$pid
        through "$work/to.json" && break
    done
    cp "$work/to.json" "$work/back.json"
    ! grep -q '"error"' "$work/to.json" && through "$work/back.json" -R
    report $? "iperf3 through examples/proxy: $(rate "$work/to.json"), and $(rate "$work/back.json") back" "$work/back.json"
fi
echo "1..$n"
exit $bad
