#!/usr/bin/env bash
# ktls.sh - a program of tests/unit/tls on a kernel that has the module "tls", in a virtual machine without acceleration: kernel, or stream,
# whose connections are then TCP with kTLS. Not part of the test matrix: it takes minutes, and needs what follows. The last lines have the
# kernel's counters of kTLS connections.
#
#   tests/tls/ktls.sh PROGRAM KERNEL   PROGRAM: build/release/tests/unit/tls/kernel; KERNEL: a directory with boot/vmlinuz* and lib/modules/*, as a package of a
#                                      kernel has it (apt-get download linux-image-6.1.0-55-amd64; dpkg -x *.deb KERNEL)
#   TEST_ARGS=copies                   arguments of the program
#
# Needs qemu-system-x86_64 and a static busybox with insmod and cpio (BUSYBOX=path).
set -u
skip() { echo "SKIPPED: tests/tls/ktls.sh: $1" >&2; exit 77; }
program=${1:?PROGRAM} kernel=${2:?KERNEL} busybox=${BUSYBOX:-$(command -v busybox)}
command -v qemu-system-x86_64 >/dev/null || skip "there is no qemu-system-x86_64"
[[ -x $program ]] || skip "$program is not built"
[[ -x $busybox ]] || skip "there is no busybox"
image=$(ls "$kernel"/boot/vmlinuz* 2>/dev/null | head -1)
[[ -n $image ]] || skip "there is no kernel in $kernel"

dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
root=$dir/root
mkdir -p "$root"/{bin,proc,sys,dev,tmp,modules}
cp "$busybox" "$root/bin/busybox"
cp "$program" "$root/bin/program"
ldd "$program" | grep -o '/[^ ]*' | while read -r library; do # at the same place as here
    mkdir -p "$root$(dirname "$library")" && cp -L "$library" "$root$library"
done
for name in tls gcm ctr ghash-generic ghash-clmulni-intel gf128mul crypto_null cryptd crypto_simd aead aesni-intel; do
    find "$kernel"/lib/modules -name "$name.ko" -exec cp {} "$root/modules" \;
done
cat >"$root/init" <<EOF
#!/bin/busybox sh
export PATH=/bin TEST_KTLS=1
busybox mount -t proc none /proc; busybox mount -t sysfs none /sys; busybox mount -t devtmpfs none /dev
busybox mount -t tmpfs none /tmp
busybox ip link set lo up
for round in 1 2 3 4; do # each needs some of the others
    for m in /modules/*.ko; do busybox insmod \$m 2>/dev/null; done
done
echo "kernel \$(busybox uname -r), \$(busybox cat /proc/sys/net/ipv4/tcp_available_ulp)"
program ${TEST_ARGS:-}
echo "status \$?"
busybox cat /proc/net/tls_stat
busybox poweroff -f
EOF
chmod +x "$root/init"
(cd "$root" && find . | "$busybox" cpio -o -H newc 2>/dev/null | gzip -1 >../initramfs) || exit 1
timeout "${TIMEOUT:-1800}" qemu-system-x86_64 -accel tcg -cpu max -m 1024 -smp 1 -nographic -no-reboot -kernel "$image" -initrd "$dir/initramfs" \
    -append "console=ttyS0 quiet panic=-1 no_timer_check" </dev/null | stdbuf -o0 tr -d '\r' | tee "$dir/log"
grep -q '^status 0' "$dir/log" && grep -q '^TlsTxSw.*[1-9]' "$dir/log"
