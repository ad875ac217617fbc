# shellcheck shell=sh
# Packages: which ones each verb of ./dev needs, and how they are installed. Sourced by ./dev, which provides
# die(), scratch() and the verb.
#
# Each verb installs only its own packages. One dpkg-query finds out what is missing, so a second run never
# touches the package manager. Packages come from the machine's own apt sources. The few that Debian 12
# lacks, or has too old, come by name from Debian 13 on the same mirror, through a private apt configuration
# that is removed afterwards: the machine's sources and preferences are never edited, and nothing else is
# upgraded.

# A name may carry the oldest version that will do. Clang is named with its version because
# clang-format must give the same answer on every machine; Debian 12 and 13 both have this one.
PACKAGES_BUILD="gcc libc6-dev meson ninja-build pkg-config libssl-dev libnghttp2-dev libuv1-dev
    libsqlite3-dev libyaml-dev libxxhash-dev zlib1g-dev libyyjson-dev>=0.10 libllhttp-dev>=9 tzdata"
PACKAGES_TEST="curl openssl python3 python3-grpcio python3-icalendar python3-kubernetes python3-yaml kubectl>=1.32
    nghttp2-client prometheus zsh fish skopeo docker-registry chromium-headless-shell python3-websocket fonts-dejavu-core
    tmux"
PACKAGES_CLANG="clang-19 libclang-rt-19-dev llvm-19"
PACKAGES_CHECK="clang-tidy-19 clang-format-19 valgrind shellcheck"
PACKAGES_ATTACK="faketime"
PACKAGES_PACKAGE="python3 python3-yaml dpkg-dev lintian skopeo docker-registry debootstrap ca-certificates gpg"
PACKAGES_KUBE="etcd-server>=3.5 etcd-client>=3.5"
FROM_DEBIAN_13="libyyjson-dev libllhttp-dev kubectl etcd-server etcd-client"
RELEASE=$(sed -n 's/^VERSION_ID="\{0,1\}\([0-9]*\).*/\1/p' /etc/os-release 2>/dev/null || true)
# Since Debian 13 the old names of time zones, which manifests use (US/Eastern), are a package of their own.
[ "$RELEASE" = 12 ] || PACKAGES_BUILD="$PACKAGES_BUILD tzdata-legacy"

DAEMON_POLICY=/usr/sbin/policy-rc.d
APT_LOCK_TRIES=300
APT_LOCK_PAUSE_S=2

# Prints those of the given names that are not installed, or older than the name demands.
missing() {
    # shellcheck disable=SC2046 # names are words
    installed=$(dpkg-query -W -f '${db:Status-Abbrev} ${Package} ${Version}\n' \
        $(printf '%s\n' "$@" | sed 's/>=.*//') 2>/dev/null | sed -n 's/^ii  *//p') || true
    for want in "$@"; do
        have=$(printf '%s\n' "$installed" | sed -n "s/^${want%%>=*} //p" | head -n 1)
        case $want in
        *'>='*) [ -n "$have" ] && dpkg --compare-versions "$have" ge "${want#*>=}" && continue ;;
        *) [ -n "$have" ] && continue ;;
        esac
        printf '%s\n' "${want%%>=*}"
    done
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    else
        sudo "$@"
    fi
}

# A package that brings a daemon must not start it: the tests start their own, on free ports.
forbid_daemons() {
    [ ! -e $DAEMON_POLICY ] || return 0
    printf '#!/bin/sh\nexit 101\n' >"$SCRATCH/policy"
    as_root install -m 755 "$SCRATCH/policy" $DAEMON_POLICY
}

allow_daemons() {
    [ ! -e "$SCRATCH/policy" ] || as_root rm -f "$SCRATCH/policy" $DAEMON_POLICY
}

# Another package manager may hold one of apt's locks: a second ./dev, or the machine's own upgrade. Apt can wait for
# dpkg's lock only, not for those of its lists and archives, so the whole call is repeated.
apt() {
    tries=$APT_LOCK_TRIES
    until as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y "$@" >"$SCRATCH/apt.log" 2>&1; do
        grep -q 'Could not get lock' "$SCRATCH/apt.log" && [ "$tries" -gt 0 ] || return 1
        [ "$tries" -ne "$APT_LOCK_TRIES" ] ||
            echo "waiting for another package manager to finish (at most $((tries * APT_LOCK_PAUSE_S)) s)" >&2
        tries=$((tries - 1))
        sleep "$APT_LOCK_PAUSE_S"
    done
}

# The mirror this machine uses for its own release, as apt itself reads its sources, whatever
# format they are in.
mirror() {
    # shellcheck disable=SC2016 # apt's own placeholders
    apt-get indextargets --format '$(CODENAME) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' |
        sed -n "s/^$1 main //p" | head -n 1
}

# Installs the given names from Debian 13 on a Debian 12 machine. Everything else of Debian 13
# ranks below what is installed and below the machine's own sources, so that only these names
# (and libraries that exist nowhere else) can come from it.
install_from_13() {
    uri=$(mirror bookworm)
    [ -n "$uri" ] || die "$* must come from Debian 13, but the apt sources of this machine name no Debian 12 mirror to find it on."
    etc=$SCRATCH/apt
    mkdir -p "$etc/sources" "$etc/preferences" "$etc/lists/partial"
    cp -r /etc/apt/sources.list.d/. "$etc/sources" 2>/dev/null || true
    cp -r /etc/apt/preferences.d/. "$etc/preferences" 2>/dev/null || true
    cp -r /var/lib/apt/lists/. "$etc/lists" 2>/dev/null || true
    keyring=/usr/share/keyrings/debian-archive-keyring.gpg
    echo "deb $([ -r $keyring ] && echo "[signed-by=$keyring]") $uri trixie main" >"$etc/trixie.list"
    cp "$etc/trixie.list" "$etc/sources/flyball-trixie.list"
    {
        printf 'Package: *\nPin: release n=trixie\nPin-Priority: 90\n\n'
        printf 'Package: %s\nPin: release n=trixie\nPin-Priority: 990\n' "$*"
    } >"$etc/preferences/flyball"
    chmod -R a+rX "$SCRATCH"

    private="-o Dir::State::lists=$etc/lists -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache="
    # shellcheck disable=SC2086 # options are words
    apt $private -o Dir::Etc::SourceList="$etc/trixie.list" -o Dir::Etc::SourceParts=/dev/null \
        -o APT::Get::List-Cleanup=0 update ||
        die "$* must come from Debian 13, but its package list cannot be read from this machine's mirror ($uri)."
    # shellcheck disable=SC2086
    apt $private -o Dir::Etc::SourceParts="$etc/sources" \
        -o Dir::Etc::PreferencesParts="$etc/preferences" install --no-install-recommends "$@" ||
        cannot_install "$@"
}

cannot_install() {
    tail -n 5 "$SCRATCH/apt.log" >&2
    die "the package manager cannot install $* (its last lines of output are above)."
}

# Makes sure of the given packages.
need() {
    command -v dpkg-query >/dev/null || {
        [ "$VERB" != deps ] || die "this machine has no dpkg; install by hand what the top of this script lists."
        return 0
    }
    lacking=$(missing "$@")
    [ -n "$lacking" ] || return 0
    # shellcheck disable=SC2086
    set -- $lacking
    [ "$(id -u)" -eq 0 ] || command -v sudo >/dev/null ||
        die "only root can install what is missing ($*); run this as root or install sudo."
    echo "installing $*" >&2
    scratch
    forbid_daemons
    # Another source of this machine may be broken; what matters is whether the install works.
    apt update || true

    ours=''
    theirs=''
    for package in "$@"; do
        case "$RELEASE: $FROM_DEBIAN_13 " in
        12:*" $package "*) theirs="$theirs $package" ;;
        *) ours="$ours $package" ;;
        esac
    done
    # shellcheck disable=SC2086
    if [ -n "$ours" ]; then
        apt install --no-install-recommends $ours || cannot_install $ours
    fi
    # shellcheck disable=SC2086
    [ -z "$theirs" ] || install_from_13 $theirs
    allow_daemons
}

# shellcheck disable=SC2086 # lists of names are words
need_for() {
    case $1 in
    build | golden | crash | simulate-report) need $PACKAGES_BUILD ;;
    up) need $PACKAGES_BUILD 'kubectl>=1.32' ;;
    test) need $PACKAGES_BUILD $PACKAGES_TEST ;;
    check) need $PACKAGES_BUILD $PACKAGES_TEST $PACKAGES_CLANG $PACKAGES_CHECK ;;
    format) need clang-format-19 ;;
    fuzz) need $PACKAGES_BUILD $PACKAGES_CLANG ;;
    kube | bench) need $PACKAGES_BUILD $PACKAGES_TEST $PACKAGES_KUBE ;;
    attack) need $PACKAGES_BUILD $PACKAGES_TEST $PACKAGES_ATTACK ;;
    soak) need $PACKAGES_BUILD ;;
    package) need $PACKAGES_BUILD $PACKAGES_PACKAGE ;;
    deps) need $PACKAGES_BUILD $PACKAGES_TEST $PACKAGES_CLANG $PACKAGES_CHECK $PACKAGES_KUBE $PACKAGES_ATTACK $PACKAGES_PACKAGE ;;
    esac
}
