#!/usr/bin/env bash
# `pageset record` on Debian's kernels of other versions: each boots in QEMU, records a load, and says what it makes of the
# recording. Without hardware virtualisation a guest is emulated, and takes one to two minutes. Installs what it needs with rustup
# and, as root, with apt; downloads a kernel of 30 MB for each release.
#
#   ci/guest.sh                 Debian 12 (Linux 6.1) and 13 (Linux 6.12)
#   ci/guest.sh RELEASE...      these releases of Debian
set -euo pipefail
cd "$(dirname "$0")/.."
source ci/legs.sh

target=x86_64-unknown-linux-musl
work=${CARGO_TARGET_DIR:-target}/guest
releases=("$@")
((${#releases[@]})) || releases=(bookworm trixie)

setup() {
    local packages=()
    command -v qemu-system-x86_64 >/dev/null || packages+=(qemu-system-x86)
    dpkg --status busybox-static >/dev/null 2>&1 || packages+=(busybox-static)
    command -v cpio >/dev/null || packages+=(cpio)
    command -v musl-gcc >/dev/null || packages+=(musl-tools)
    if ((${#packages[@]})); then
        apt-get update
        apt-get install --yes --no-install-recommends "${packages[@]}"
    fi
    # Said twice, it does nothing.
    rustup target add "$target"
}

# The kernel of a Debian release, in $work/RELEASE/vmlinuz. apt gets lists of its own: this machine may run another release.
kernel() {
    local directory=$work/$1
    [[ -s $directory/vmlinuz ]] && return
    mkdir -p "$directory"/{lists/partial,cache/archives/partial}
    directory=$(realpath "$directory")
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $1 main" \
        >"$directory/sources.list"
    local private=(
        -o "Dir::Etc::SourceList=$directory/sources.list" -o Dir::Etc::SourceParts=/dev/null
        -o "Dir::State::Lists=$directory/lists" -o "Dir::Cache=$directory/cache" -o APT::Sandbox::User=root
    )
    apt-get "${private[@]}" update
    local package
    package=$(apt-cache "${private[@]}" depends linux-image-cloud-amd64 | sed -n 's/^ *Depends: //p' | head -n 1)
    (cd "$directory" && apt-get "${private[@]}" download "$package")
    dpkg-deb --fsys-tarfile "$directory/$package"_*.deb | tar -xO --wildcards './boot/vmlinuz-*' >"$directory/vmlinuz.part"
    mv "$directory/vmlinuz.part" "$directory/vmlinuz"
}

initramfs() {
    local root=$work/root
    rm -rf "$root" && mkdir -p "$root/bin"
    cp ci/guest/init ci/guest/load "$root"
    chmod +x "$root/init" "$root/load"
    cp "$(command -v busybox)" "$root/bin/busybox"
    cp "${CARGO_TARGET_DIR:-target}/$target/release/pageset" "$root/bin"
    (cd "$root" && find . | cpio --quiet -o -H newc) | gzip -1 >"$work/initrd"
}

# A KVM that a machine has without the processor's help does not boot these kernels.
if [[ -w /dev/kvm ]] && grep -qwE 'vmx|svm' /proc/cpuinfo; then
    accelerator=(-accel kvm -cpu host)
else
    accelerator=(-accel "tcg,thread=multi" -cpu max)
fi

# Boots a release's guest; whether it came to its end and left its results.
boot() {
    local directory=$work/$1
    rm -rf "$directory/results" && mkdir "$directory/results"
    # The first serial port is the console, the second one takes the results.
    timeout 300 qemu-system-x86_64 "${accelerator[@]}" -smp 2 -m 1536 -no-reboot -display none \
        -monitor none -nodefaults -kernel "$directory/vmlinuz" -initrd "$work/initrd" \
        -append "console=ttyS0 quiet oops=panic panic=-1 rdinit=/init" \
        -serial "file:$directory/console" -serial "file:$directory/results.tar" &&
        tar -xf "$directory/results.tar" -C "$directory/results"
}

guest() {
    echo "accelerator: ${accelerator[1]}"
    # QEMU 7.2 stops an emulated Linux 6.12 in one of five runs, at boot or while it patches itself for a tracepoint. That is no
    # find: the guest begins again, and only what it leaves is judged.
    local attempt
    for attempt in 1 2 3; do
        boot "$1" && break
        cat "$work/$1/console"
        echo "the guest stopped in attempt $attempt of 3"
        ((attempt < 3)) || return 1
    done
    python3 ci/guest/judge.py "$work/$1/results"
}

run "setup" setup
run "pageset" cargo build --release --target "$target" --package pageset-cli
run "file system" initramfs
for release in "${releases[@]}"; do
    run "kernel of $release" kernel "$release"
    run "guest of $release" guest "$release"
done
echo "ci/guest.sh: ${#releases[@]} guests passed in $SECONDS s"
