#!/bin/sh
# Compiles this crate for machines that are not at hand, and runs its tests there.
#
#   crates/erasure/cross/check.sh [directory for downloads and builds]
#
# What it does:
#   * AArch64 Linux: the unit tests and the published test vectors, in QEMU. This is the test of
#     the NEON kernel.
#   * WebAssembly with simd128: the same in Node.js, by way of WASI (preview 1). This is the test
#     of the simd128 kernel.
#   * WebAssembly without simd128: the same, with the portable kernel on a 32-bit machine.
#   * Bare AArch64 and WebAssembly, without the feature `std`: builds, to see that the crate needs
#     `core` and `alloc` only.
#
# What it needs: Debian 12 on x86-64, a cargo that is no older than the crate's rust-version,
# Node.js 20 or later, and
#
#   apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user
#
# The compiler and the standard libraries are Debian's (rustc-web). They are unpacked into the
# directory and not installed, so nothing that is installed changes, and no root is needed. A
# second run downloads nothing; remove the directory to start afresh.
set -eu

crate=$(cd "$(dirname "$0")/.." && pwd)
work=${1:-$crate/../../target/cross}
mkdir -p "$work"
work=$(cd "$work" && pwd)
root=$work/root

for tool in cargo node aarch64-linux-gnu-gcc qemu-aarch64 apt-get dpkg; do
    command -v "$tool" >/dev/null || { echo "$0: no $tool" >&2; exit 1; }
done

# The packages of two architectures, from lists of our own.
fetch() {
    mkdir -p "$work/apt/lists/partial" "$work/apt/archives/partial" "$work/debs"
    : >"$work/apt/status"
    cat >"$work/apt/apt.conf" <<EOF
#clear APT::Architectures;
APT::Architecture "amd64";
APT::Architectures { "amd64"; "arm64"; };
APT::Sandbox::User "";
Dir::State "$work/apt";
Dir::State::status "$work/apt/status";
Dir::Cache "$work/apt";
EOF
    export APT_CONFIG="$work/apt/apt.conf"
    apt-get -qq update
    std=$(apt-cache depends libstd-rust-web-dev | sed -n 's/.*Depends: \(libstd-rust-web-[0-9.]*\)$/\1/p')
    llvm=$(apt-cache depends "$std" | sed -n 's/.*Depends: \(libllvm[0-9]*\)$/\1/p')
    lld=lld-${llvm#libllvm}
    (
        cd "$work/debs"
        apt-get -qq download rustc-web:amd64 "$std:amd64" libstd-rust-web-dev:amd64 \
            libstd-rust-web-dev:arm64 rust-web-src "$llvm:amd64" "$lld:amd64" wasi-libc
        for package in *.deb; do
            dpkg -x "$package" "$root.part"
        done
    )
    unset APT_CONFIG
    cat >"$root.part/rustc" <<EOF
#!/bin/sh
LD_LIBRARY_PATH=$root/usr/lib/x86_64-linux-gnu exec "$root/usr/bin/rustc" "\$@"
EOF
    chmod +x "$root.part/rustc"
    mv "$root.part" "$root"
}
[ -d "$root" ] || fetch

# The crate as a package without what only its other tests depend on, so that the standard library
# can be built from the sources that came with it and nothing else.
package=$work/package
mkdir -p "$package"
cat >"$package/Cargo.toml" <<EOF
[package]
name = "sutura-erasure"
version = "0.0.0"
edition = "2024"
autotests = false
[features]
default = ["std"]
std = []
[lib]
path = "$crate/src/lib.rs"
[[test]]
name = "vectors"
path = "$crate/tests/vectors.rs"
[profile.dev]
opt-level = 3
debug = false
[workspace]
EOF
cat >"$package/vendored.toml" <<EOF
[source.crates-io]
replace-with = "vendored"
[source.vendored]
directory = "$(echo "$root"/usr/src/rustc-*/library/vendor)"
EOF
cat >"$package/wasi.mjs" <<'EOF'
import { readFile } from 'node:fs/promises';
import { WASI } from 'node:wasi';
const args = process.argv.slice(2);
const wasi = new WASI({ version: 'preview1', args, returnOnExit: true });
const module = await WebAssembly.compile(await readFile(args[0]));
process.exitCode = wasi.start(await WebAssembly.instantiate(module, wasi.getImportObject()));
EOF

cd "$package"
export RUSTC="$root/rustc" CARGO_TARGET_DIR="$work/target"
# The standard library cannot be built by a compiler that does not take itself for a nightly one.
export RUSTC_BOOTSTRAP=1
unset RUSTFLAGS

export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L /usr/aarch64-linux-gnu"

# Debian's C library for WASI has no threads. The standard library names their functions, but
# nothing here calls them.
libc=$root/usr/lib/wasm32-wasi
wasi_flags="-Clink-self-contained=no -Clinker-flavor=wasm-ld -Lnative=$libc
    -Clink-arg=$libc/crt1-command.o -Clink-arg=--unresolved-symbols=ignore-all"
export CARGO_TARGET_WASM32_WASIP1_LINKER="$(echo "$root"/usr/bin/wasm-ld-*)"
export CARGO_TARGET_WASM32_WASIP1_RUNNER="node --no-warnings $package/wasi.mjs"

# One test compares the vectors with the specification, which is not where it looks for it.
tests() {
    cargo --offline --config vendored.toml test --quiet --lib --test vectors "$@" \
        -- --skip the_specification_quotes_the_vectors
}
build() {
    cargo --offline --config vendored.toml build --quiet --no-default-features \
        -Zbuild-std=core,alloc "$@"
}

echo "== AArch64: NEON"
tests --target aarch64-unknown-linux-gnu

echo "== WebAssembly: simd128"
export CARGO_TARGET_WASM32_WASIP1_RUSTFLAGS="$wasi_flags -Ctarget-feature=+simd128"
tests -Zbuild-std=std,panic_abort,test --target wasm32-wasip1

echo "== WebAssembly: portable"
export CARGO_TARGET_WASM32_WASIP1_RUSTFLAGS="$wasi_flags"
tests -Zbuild-std=std,panic_abort,test --target wasm32-wasip1

for target in aarch64-unknown-none wasm32-unknown-unknown; do
    echo "== $target: without std"
    build --target "$target"
done
echo "== x86-64: without std"
cargo --offline build --quiet --no-default-features

echo "all passed"
