#!/bin/sh
# package.sh FOLDER: builds the Debian package and the image archive of this machine's architecture into FOLDER, and
# checks them. Called by ./dev package.
#
#     flyball_VERSION_ARCH.deb       lintian finds nothing in it
#     flyball-VERSION-ARCH.oci.tar   one layer; pushed to a registry on this machine and pulled back
#     flyball-VERSION-ARCH.spdx.json bill of materials of the image
#     flyball-VERSION-ARCH.tar.gz    plugin of kubectl, and flyball-VERSION-ARCH.krew.yaml, its manifest for krew; RELEASE_URL
#                                    is where the archive will be published
#     SHA256SUMS                     and SHA256SUMS.asc, if SIGNING_KEY names a key of gpg
#
# Time stamps are those of the last commit: the same commit, compiler and libraries give the same bytes.
set -eu
cd "$(dirname "$0")/.."

out=$(mkdir -p "$1" && cd "$1" && pwd)
version=$(sed -n "s/^  version: '\(.*\)',/\1/p" meson.build)
architecture=$(dpkg --print-architecture)
release=$(sed -n 's/^VERSION_ID="\{0,1\}\([0-9]*\).*/\1/p' /etc/os-release)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
scratch=$(mktemp -d)
program=build-package/program # beside the default of FOLDER
registry=
# shellcheck disable=SC2317 # called by the trap
clean_up() {
    [ -z "$registry" ] || kill "$registry"
    rm -rf "$scratch"
}
trap clean_up EXIT
passed=0

# verify NAME COMMAND...
verify() {
    name=$1
    shift
    "$@" >"$scratch/step.log" 2>&1 || {
        cat "$scratch/step.log" >&2
        echo "FAILED  $name"
        echo "$passed passed, 1 failed"
        exit 1
    }
    passed=$((passed + 1))
    echo "ok      $name"
}

# Debian 12 has none or too old ones of these: a package for it brings them along.
PRIVATE_LIBRARIES=''
[ "$release" != 12 ] || PRIVATE_LIBRARIES='libyyjson libllhttp'

# build FOLDER: the program as packages ship it. Paths of this machine do not get into it.
build() {
    # shellcheck disable=SC2016 # the loader expands $ORIGIN
    meson setup "$1" --prefix /usr -Dbuildtype=plain -Doptimization=2 -Ddebug=false -Db_lto=true \
        -Dlibrary_folder='$ORIGIN/../lib/flyball' -Dc_args="-ffile-prefix-map=$PWD=. -D_FORTIFY_SOURCE=2" >"$scratch/meson.log" &&
        ninja -C "$1" --quiet flyball deploy/flyball deploy/_flyball deploy/flyball.fish
}

# The libraries the program needs that Debian 12 lacks, with their licenses.
add_libraries() {
    for library in $PRIVATE_LIBRARIES; do
        path=$(ldd "$1/usr/bin/flyball" | sed -n "s/.*${library}[^ ]* => \([^ ]*\) .*/\1/p")
        install -D -m 644 "$(readlink -f "$path")" "$1/usr/lib/flyball/$(basename "$path")"
        strip --strip-unneeded "$1/usr/lib/flyball/$(basename "$path")"
        owner=$(dpkg-query -S "$(readlink -f "$path")" 2>/dev/null || dpkg-query -S "/usr$(readlink -f "$path")")
        cp "/usr/share/doc/${owner%%:*}/copyright" "$1/usr/share/doc/flyball/copyright.$library"
    done
}

make_deb() {
    root=$scratch/$1
    DESTDIR=$root meson install -C "$program" --no-rebuild --strip --quiet &&
        add_libraries "$root" && deploy/deb/build "$root" "$2" "$version"
}

make_image() {
    root=$scratch/$1
    deploy/image/rootfs "$program/flyball" "$root" && deploy/image/archive.py "$root" "$2" "$version"
}

make_sbom() {
    deploy/image/sbom.py "$scratch/image" "$version" >"$1"
}

make_plugin() {
    deploy/krew/archive "$scratch/$1" "$2" "$version" >"$3"
}

# As krew does it: unpacked into a folder, and called through a link from another.
plugin_runs() {
    mkdir -p "$scratch/store" "$scratch/bin" && tar -xzf "$plugin" -C "$scratch/store" &&
        ln -s "$scratch/store/bin/kubectl-flyball" "$scratch/bin/kubectl-flyball" &&
        "$scratch/bin/kubectl-flyball" --version && ldd "$scratch/store/bin/kubectl-flyball" | grep "$scratch/store.*libyyjson" &&
        grep -q "sha256: $(sha256sum "$plugin" | cut -d' ' -f1)" "$manifest" && python3 -c '
import sys, yaml
spec = yaml.safe_load(open(sys.argv[1]))["spec"]
assert spec["version"] == "v" + sys.argv[2] and spec["platforms"][0]["bin"] == "bin/kubectl-flyball", spec' "$manifest" "$version"
}

# A package that someone installs, runs and removes; in a folder, without touching this machine.
unpacks_and_runs() {
    dpkg-deb -x "$deb" "$scratch/unpacked" &&
        LD_LIBRARY_PATH=$scratch/unpacked/usr/lib/flyball "$scratch/unpacked/usr/bin/flyball" --version
}

fits() {
    bytes=$(stat -c %s "$image")
    echo "$bytes bytes"
    [ "$bytes" -le 12582912 ]
}

# A registry from packages on a free port of this machine.
start_registry() {
    port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    cat >"$scratch/registry.yml" <<END
version: 0.1
storage: { filesystem: { rootdirectory: $scratch/registry } }
http: { addr: "127.0.0.1:$port" }
END
    docker-registry serve "$scratch/registry.yml" >"$scratch/registry.log" 2>&1 &
    registry=$!
}

goes_through_a_registry() {
    place=docker://127.0.0.1:$port/flyball:$version
    skopeo copy --retry-times 5 --dest-tls-verify=false "oci-archive:$image" "$place" &&
        skopeo copy --src-tls-verify=false "$place" "oci:$scratch/pulled" &&
        skopeo inspect "oci:$scratch/pulled" | grep -q "\"org.opencontainers.image.version\": \"$version\"" &&
        [ "$(skopeo inspect --format '{{.Digest}}' "oci-archive:$image")" = \
            "$(skopeo inspect --format '{{.Digest}}' "oci:$scratch/pulled")" ]
}

# installs_on CODENAME: on a fresh Debian in a folder, the package installs, runs and is removed without a trace.
installs_on() {
    # shellcheck disable=SC2016 # apt's own placeholder
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Component: main' | head -n 1)
    debian=$scratch/$1
    # shellcheck disable=SC2016 # for the inner shell
    debootstrap --variant=minbase "$1" "$debian" "$mirror" && cp "$deb" "$debian/tmp/flyball.deb" &&
        unshare --mount sh -eu -c '
            mount -t proc proc "$0/proc"
            run() { chroot "$0" env DEBIAN_FRONTEND=noninteractive "$@"; }
            run apt-get install -q -y --no-install-recommends /tmp/flyball.deb
            run flyball up --data /tmp/data --for 20s | grep " 0 errors"
            run apt-get purge -q -y flyball
            [ ! -e "$0/usr/bin/flyball" ] && [ ! -e "$0/usr/lib/flyball" ]' "$debian"
    result=$?
    rm -rf "$debian"
    return $result
}

make_sums() {
    (cd "$out" && sha256sum "flyball_"*.deb "flyball-$version-"* >SHA256SUMS)
    [ -z "${SIGNING_KEY:-}" ] || gpg --batch --yes --armor --detach-sign -u "$SIGNING_KEY" "$out/SHA256SUMS"
}

deb=$out/flyball_${version}_$architecture.deb
image=$out/flyball-$version-$architecture.oci.tar
plugin=$out/flyball-$version-$architecture.tar.gz
manifest=$out/flyball-$version-$architecture.krew.yaml
rm -rf "$program"
verify "the program is built" build "$program"
verify "the Debian package is built" make_deb deb "$deb"
verify "lintian finds nothing" lintian --fail-on error,warning --tag-display-limit 0 "$deb"
verify "the package unpacks and its program runs" unpacks_and_runs
verify "the plugin of kubectl is built" make_plugin deb "$plugin" "$manifest"
verify "the plugin runs from the folder of krew" plugin_runs
verify "the image is built" make_image image "$image"
verify "the image is at most 12 MB" fits
verify "the bill of materials is made" make_sbom "$out/flyball-$version-$architecture.spdx.json"
make_deb deb-again "$scratch/again.deb" && make_image image-again "$scratch/again.tar"
verify "the package is the same byte for byte when made again" cmp "$deb" "$scratch/again.deb"
verify "the image is the same byte for byte when made again" cmp "$image" "$scratch/again.tar"
start_registry
verify "a registry takes the image and returns it" goes_through_a_registry
verify "the sums are written" make_sums
skipped=0
for codename in bookworm trixie; do
    if [ "$(id -u)" -eq 0 ] && { [ "$release" = 12 ] || [ "$codename" = trixie ]; }; then
        verify "it installs, runs and is removed on a fresh Debian $codename" installs_on "$codename"
    else
        echo "skipped Debian $codename: only root may set it up, and a package runs on the Debian that built it or newer"
        skipped=$((skipped + 1))
    fi
done
ls -l "$out"
echo "$passed passed, 0 failed, $skipped skipped"
