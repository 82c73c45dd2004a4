#!/usr/bin/env bash
# Runs the static file that `cargo xtask dist` makes on Debian's kernels of other versions. Each kernel boots
# in QEMU from a file system that has the file, busybox and two scripts. In the guest, `pageset` records a
# load and reads the recording. Without hardware virtualisation, QEMU emulates the guest, which takes two to
# three minutes. The script installs the packages that it needs as root with apt, and downloads a kernel of 30
# MB for each version. PAGESET names the file.
#
#   cargo xtask ci night guest                 Linux 6.1, 6.12, 7.1, 7.2, 7.3, and the newest that Debian has
#   cargo xtask ci night guest -- VERSION...      these, as in 6.12
#
# For each version, the script takes the newest image in Debian's releases, backports, unstable and
# experimental. If none of these has the version any more, the script skips it. That is no failure.
set -euo pipefail
cd "$(dirname "$0")/.."
source "ci/parts.sh"

pageset=${PAGESET:?name the static file, or call this as: cargo xtask ci night guest}
# This path is absolute, because apt downloads into the directory that it is called in.
work=$(realpath --canonicalize-missing "${CARGO_TARGET_DIR:-target}/guest")
versions=("$@")
((${#versions[@]})) || versions=(6.1 6.12 7.1 7.2 7.3 newest)
suites=(bookworm bookworm-backports trixie trixie-backports sid experimental)

setup() {
    local packages=()
    command -v qemu-system-x86_64 >/dev/null || packages+=(qemu-system-x86)
    dpkg --status busybox-static >/dev/null 2>&1 || packages+=(busybox-static)
    command -v cpio >/dev/null || packages+=(cpio)
    if ((${#packages[@]})); then
        apt-get update
        apt-get install --yes --no-install-recommends "${packages[@]}"
    fi
}

# Runs apt with package lists of its own, because this machine may run another release.
private_apt() {
    local command=$1
    shift
    local lists
    lists=$work/apt
    "$command" -o "Dir::Etc::SourceList=$lists/sources.list" -o Dir::Etc::SourceParts=/dev/null \
        -o "Dir::State::Lists=$lists/lists" -o "Dir::Cache=$lists/cache" -o APT::Sandbox::User=root "$@"
}

lists() {
    mkdir -p "$work"/apt/{lists/partial,cache/archives/partial}
    local suite
    for suite in "${suites[@]}"; do
        echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $suite main"
    done >"$work/apt/sources.list"
    private_apt apt-get update
}

# Prints the names of a version's images, the newest last. Up to Linux 7.1, an image is in linux-image-*.
# Later that package has no files, and depends on linux-binary-*.
images() {
    local version='[0-9]+\.[0-9]+'
    [[ $1 == newest ]] || version=${1//./\\.}
    private_apt apt-cache pkgnames linux- |
        sed -nE "s/^(linux-(binary|image)-($version\.[0-9]+[^ ]*)-cloud-amd64)\$/\3 \2 \1/p" |
        grep -v -e -dbg -e -rt | sort -V -k 1,1 -k 2,2r | awk '{ print $3 }'
}

# Puts the kernel of a version into $work/VERSION/vmlinuz. Fails if there is none.
kernel() {
    local directory=$work/$1
    [[ -s $directory/vmlinuz ]] && return
    mkdir -p "$directory"
    directory=$(realpath "$directory")
    local package
    for package in $(images "$1" | tac); do
        echo "$package"
        (cd "$directory" && private_apt apt-get download "$package") || continue
        # If a package has no kernel in it, the next package of the list has the kernel.
        if dpkg-deb --fsys-tarfile "$directory/$package"_*.deb |
            tar -xO --wildcards './boot/vmlinuz-*' './usr/lib/modules/*/vmlinuz' 2>/dev/null >"$directory/vmlinuz.part" ||
            [[ -s $directory/vmlinuz.part ]]; then
            mv "$directory/vmlinuz.part" "$directory/vmlinuz"
            echo "$package" >"$directory/package"
            return
        fi
    done
}

initramfs() {
    local root=$work/root
    rm -rf "$root" && mkdir -p "$root/bin"
    cp ci/guest/init ci/guest/load "$root"
    chmod +x "$root/init" "$root/load"
    cp "$(command -v busybox)" "$root/bin/busybox"
    cp "$pageset" "$root/bin/pageset"
    (cd "$root" && find . | cpio --quiet -o -H newc) | gzip -1 >"$work/initrd"
}

# A KVM without support by the processor does not boot these kernels.
if [[ -w /dev/kvm ]] && grep -qwE 'vmx|svm' /proc/cpuinfo; then
    accelerator=(-accel kvm -cpu host)
else
    accelerator=(-accel "tcg,thread=multi" -cpu max)
fi

# Boots a version's guest. Fails if the guest did not end, or left no results.
boot() {
    local directory=$work/$1
    rm -rf "$directory/results" && mkdir "$directory/results"
    # The first serial port is the console. The second port takes the results.
    timeout 600 qemu-system-x86_64 "${accelerator[@]}" -smp 2 -m 1536 -no-reboot -display none \
        -monitor none -nodefaults -kernel "$directory/vmlinuz" -initrd "$work/initrd" \
        -append "console=ttyS0 quiet oops=panic panic=-1 no_timer_check rdinit=/init" \
        -serial "file:$directory/console" -serial "file:$directory/results.tar" &&
        tar -xf "$directory/results.tar" -C "$directory/results"
}

guest() {
    echo "accelerator: ${accelerator[1]}"
    # QEMU 7.2 stops an emulated Linux 6.12 in one of five runs, at boot or while it patches itself for a
    # tracepoint. That is no bug of pageset, so the guest begins again. Only its results count.
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
run "file system" initramfs
# Whether this image was already booted as another version.
is_tried() {
    local version
    for version in "${passed[@]}"; do
        [[ $(cat "$work/$version/package") == "$1" ]] && return
    done
    return 1
}

run "package lists" lists
passed=()
absent=()
failed=()
for version in "${versions[@]}"; do
    run "kernel $version" kernel "$version"
    if [[ ! -s $work/$version/vmlinuz ]]; then
        absent+=("$version")
        continue
    fi
    if [[ $version == newest ]] && is_tried "$(cat "$work/newest/package")"; then
        continue
    fi
    # If a version fails, the other versions still run. Do not call the part in a condition: there it would go
    # on after a command that fails.
    set +e
    (set -e && run "guest $version" guest "$version")
    status=$?
    set -e
    if ((status == 0)); then
        passed+=("$version")
    else
        failed+=("$version")
    fi
done
echo
echo "| version | image | result |"
echo "|---|---|---|"
for version in "${passed[@]}"; do
    echo "| $version | $(cat "$work/$version/package" 2>/dev/null || echo '?') | passed |"
done
for version in "${absent[@]}"; do
    echo "| $version | | not to be had |"
done
for version in "${failed[@]}"; do
    echo "| $version | $(cat "$work/$version/package" 2>/dev/null || echo '?') | FAILED |"
done
echo "ci/guest.sh: ${#passed[@]} guests passed, ${#failed[@]} failed, ${#absent[@]} not to be had, in $SECONDS s"
((${#failed[@]} == 0))
