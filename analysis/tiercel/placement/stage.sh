#!/bin/sh
# Puts files and folders where the plan wants them.
#   sh stage.sh in     before the program: copies them to their system and leaves links in their place
#   sh stage.sh out    after the program: brings results back and removes the links
# Nothing is removed before its copy is complete; run either again after an interruption.
#
# Beside HOME, where a file or folder belongs:
#   HOME.tiercel-home     the original, while a link lies in its place
#   HOME.tiercel-part     a copy that is not complete
#   HOME.tiercel-new      a complete folder that is about to take its place
#   HOME.tiercel-left     what the program left at PLACE after it had replaced the link
# Beside PLACE, where it lies while the program runs:
#   PLACE.tiercel-begun   what lies at PLACE is this script's
#   PLACE.tiercel-linked  the link was made: what happened to it since, the program did
set -eu
LC_ALL=C
export LC_ALL
mask=$(umask)
umask 077
failed=0
devices=
newline='
'

say() { printf 'stage.sh: %s\n' "$*" >&2; }

refuse() {
    say "$*"
    exit 1
}

exists() { [ -e "$1" ] || [ -L "$1" ]; }

target_of() { # sets target: where a link points to, to the last byte
    target=$(readlink -n -- "$1" && printf x)
    target=${target%x}
}

ours() { # path place: is it a link of this script's?
    [ -L "$1" ] || return 1
    target_of "$1"
    [ "$target" = "$2" ]
}

follow() { # home place: sets home, past links that were there before, and the names beside it
    home=$1
    place=$2
    links=0
    while [ -L "$home" ] && ! ours "$home" "$place"; do
        links=$((links + 1))
        [ "$links" -le 40 ] || refuse "$1: too many levels of symbolic links"
        case $target in
        /*) home=$target ;;
        *) home=${home%/*}/$target ;;
        esac
        while [ "$home" != "${home%/}" ]; do home=${home%/}; done
    done
    keep=$home.tiercel-home
    part=$home.tiercel-part
    new=$home.tiercel-new
    begun=$place.tiercel-begun
    linked=$place.tiercel-linked
}

above() { # path: sets folder, the one that it lies in
    folder=${1%/*}
    folder=${folder:-/}
}

near() { # path: sets near, the nearest folder above it that exists
    near=${1%/*}
    while [ -n "$near" ] && [ ! -d "$near" ]; do near=${near%/*}; done
    near=${near:-/}
}

real_of() { # folder: sets real, its path without links
    real=$(cd -P -- "$1" && pwd -P && printf x)
    real=${real%"${newline}x"}
}

discard() {
    if exists "$1"; then
        rm -rf -- "$1" 2>/dev/null || {
            find "$1" -type d -exec chmod u+rwx {} + # folders that may not be written to
            rm -rf -- "$1"
        }
    fi
}

# -- what is looked at before anything is touched ---------------------------------------------------------

mounts_in() { # folder: is it a mount point, or does it hold one?
    [ -r /proc/self/mountinfo ] || return 1
    real_of "$1"
    case $real in
    *[\\\ '	'"$newline"]*) # as the kernel writes them there
        real=$(printf %s "$real" | sed 's/\\/\\134/g; s/ /\\040/g; s/	/\\011/g' | tr '\n' '\001' | sed 's/\x01/\\012/g')
        ;;
    esac
    while read -r _ _ _ _ point _; do
        case $point in
        "$real" | "$real"/*) return 0 ;;
        esac
    done </proc/self/mountinfo
    return 1
}

users_of() { # folder: sets users, the processes of this node that work in it
    real_of "$1"
    users=
    case $newline$folders_in_use$newline in
    *"$newline$real$newline"* | *"$newline$real/"*) ;;
    *) return 0 ;;
    esac
    for process in /proc/[0-9]*; do
        at=$(readlink -n -- "$process/cwd" 2>/dev/null && printf x) || continue
        case ${at%x}/ in
        "$real"/*) users="$users ${process#/proc/}" ;;
        esac
    done
}

check_folder() { # folder
    if mounts_in "$1"; then refuse "$1: is or holds a mount point, which cannot be moved"; fi
    users_of "$1"
    [ -z "$users" ] || refuse "$1: is the working folder of process$users: leave it first (cd /)"
}

size_of() { # path: sets size, in KiB
    size=0
    if exists "$1"; then
        size=$(du -sk -- "$1") || refuse "$1: cannot be read whole"
        size=${size%%[!0-9]*}
    fi
}

need() { # path KiB: that much is going to be written there
    near "$1"
    [ -w "$near" ] || refuse "$near: cannot be written to"
    if [ "$near" != "${last:-}" ]; then
        last=$near
        device=$(stat -c %d -- "$near")
        case " $devices " in
        *" $device "*) ;;
        *)
            devices="$devices $device"
            free=$(stat -f -c '%a * %S / 1024' -- "$near")
            eval "free_$device=\$(($free)) need_$device=0 near_$device=\$near"
            ;;
        esac
    fi
    eval "need_$device=\$((need_$device + $2))"
}

check_room() {
    for device in $devices; do
        eval "free=\$free_$device need=\$need_$device near=\$near_$device"
        [ "$need" -le "$free" ] || refuse "$near: no room for $need KiB, $free KiB are free; nothing was touched"
    done
}

check_kind() { # kind path
    if [ "$1" = folder ] && [ ! -d "$2" ]; then refuse "$2: is not a folder (any more)"; fi
    if [ "$1" = file ] && [ -d "$2" ]; then refuse "$2: is a folder (now)"; fi
}

check_in() {
    follow "$2" "$3"
    if exists "$home.tiercel-begun"; then
        refuse "$2: another plan has staged it: run its script with \`out\` first"
    fi
    source=$home
    if ours "$home" "$place"; then
        if exists "$place"; then return 0; fi
        source=$keep # its system was cleared
    elif exists "$home"; then
        check_kind "$1" "$home"
        if exists "$keep" && ! exists "$begun" && ! exists "$new"; then
            refuse "$keep: is left from another staging: remove it if $home is right"
        fi
    elif exists "$keep"; then
        source=$keep
    fi
    if exists "$place" && ! exists "$begun"; then
        refuse "$place: is there already, and is not of this script: move it away"
    fi
    if [ "$1" = folder ] && [ -d "$source" ]; then check_folder "$source"; fi
    size=0
    case $1$4$5 in
    folder00) ;; # a folder of temporary files: what it held before is not needed
    *) size_of "$source" ;;
    esac
    copy=$size
    for old in "$place" "$place.tiercel-part"; do
        size_of "$old"
        copy=$((copy - size)) # removed before
    done
    if [ "$copy" -lt 0 ]; then copy=0; fi
    need "$home" 0
    need "$place" "$copy"
}

check_out() {
    follow "$2" "$3"
    if ! exists "$begun" && ! ours "$home" "$place"; then return 0; fi
    for old in "$place" "$keep"; do
        if [ -d "$old" ]; then check_folder "$old"; fi
    done
    size=0
    if ours "$home" "$place" && comes_out "$1" "$5"; then size_of "$place"; fi
    copy=$size
    size_of "$part"
    if [ "$copy" -gt "$size" ]; then copy=$((copy - size)); else copy=0; fi
    need "$home" "$copy"
}

# -- before the program -----------------------------------------------------------------------------------

copy_to_place() { # from
    : >"$begun"
    discard "$place.tiercel-part"
    discard "$place"
    cp -a -- "$1" "$place.tiercel-part"
    mv -- "$place.tiercel-part" "$place"
}

make_place() { # kind
    : >"$begun"
    discard "$place.tiercel-part"
    discard "$place"
    if [ "$1" = folder ]; then (umask "$mask" && mkdir -- "$place"); fi
}

stage_in() { # kind home place in? out?
    follow "$2" "$3"
    if exists "$new" || { exists "$linked" && ! ours "$home" "$place"; }; then
        stage_out "$@" # of the run before, which was not staged out
        clean "$@"
    fi
    above "$place"
    mkdir -p -- "$folder"
    if ours "$home" "$place"; then
        if ! exists "$place"; then
            case $1$4$5 in folder00) from= ;; *) from=$keep ;; esac
            if exists "$from"; then copy_to_place "$from"; else make_place "$1"; fi
        fi
        : >"$linked"
        return 0
    fi
    if ! exists "$home" && exists "$keep"; then mv -- "$keep" "$home"; fi
    if exists "$keep"; then discard "$keep"; fi # `out` was cut off before it removed this
    case $1$4$5 in folder00) from= ;; *) from=$home ;; esac
    if exists "$from"; then copy_to_place "$from"; else make_place "$1"; fi
    if exists "$home"; then mv -- "$home" "$keep"; fi
    above "$home"
    (umask "$mask" && mkdir -p -- "$folder")
    ln -s -- "$place" "$home"
    : >"$linked"
}

# -- after the program ------------------------------------------------------------------------------------

bring() { # to: copies what lies at place there, instead of the link
    discard "$1.tiercel-part"
    cp -a -- "$place" "$1.tiercel-part"
    if [ ! -d "$place" ]; then
        if [ "$1" = "$home" ]; then rm -f -- "$linked"; fi
        mv -f -- "$1.tiercel-part" "$1"
        return 0
    fi
    mv -- "$1.tiercel-part" "$1.tiercel-new"
    if [ "$1" = "$home" ]; then rm -f -- "$linked"; fi
    rm -f -- "$1"
    mv -- "$1.tiercel-new" "$1"
}

same() {
    if [ -d "$1" ]; then
        [ -d "$2" ] && diff -r -q --no-dereference -- "$1" "$2" >/dev/null 2>&1
    else
        [ -f "$2" ] && cmp -s -- "$1" "$2"
    fi
}

without_link() { # out?: the program removed the link, renamed it, or put something of its own there
    above "$home"
    at=$folder
    found=
    for other in "$at"/* "$at"/.[!.]* "$at"/..?*; do
        case $other in
        *.tiercel-new) # a folder that had been renamed, cut off between two steps
            if ! exists "${other%.tiercel-new}"; then
                mv -- "$other" "${other%.tiercel-new}"
                if same "$place" "${other%.tiercel-new}"; then found=1; fi
            fi
            ;;
        *)
            if ours "$other" "$place" && exists "$place"; then
                bring "$other"
                found=1
            fi
            ;;
        esac
    done
    changed=
    if [ "$1" = 1 ] && ! same "$place" "$keep"; then changed=1; fi
    # Removed, or renamed to where nobody looks: who knows.
    if ! exists "$home" && exists "$keep"; then changed=1; fi
    if [ -z "$found" ] && [ -n "$changed" ] && exists "$place" && ! same "$place" "$home"; then
        left=$home.tiercel-left
        number=1
        while exists "$left"; do
            number=$((number + 1))
            left=$home.tiercel-left$number
        done
        discard "$part"
        cp -a -- "$place" "$part"
        mv -- "$part" "$left"
        say "$home: the program replaced, moved or removed its link; what lay behind it is in $left"
    fi
    discard "$keep"
    rm -f -- "$linked"
}

comes_out() { # kind out?
    exists "$place" || return 1
    if [ "$2" = 1 ]; then return 0; fi
    # A file that is not expected to come out, and is new or changed all the same.
    [ "$1" = file ] && { ! exists "$keep" || [ "$place" -nt "$keep" ]; }
}

stage_out() { # kind home place in? out?
    follow "$2" "$3"
    if exists "$new" && { ours "$home" "$place" || ! exists "$home"; }; then
        rm -f -- "$linked"
        rm -f -- "$home"
        mv -- "$new" "$home"
        return 0
    fi
    if exists "$new"; then refuse "$new: is this folder's newest state, but $home is there again: remove one"; fi
    if ours "$home" "$place"; then
        if comes_out "$1" "$5"; then
            bring "$home"
            return 0
        fi
        if ! exists "$place" && ! exists "$begun"; then
            say "$home: its copy is gone with all beside it (a restart?): what was there before the program is put back"
            failed=1
        fi
        rm -f -- "$linked"
        rm -f -- "$home"
    elif exists "$linked"; then
        without_link "$5"
        return 0
    fi
    if ! exists "$home" && exists "$keep"; then mv -- "$keep" "$home"; fi
}

clean() { # kind home place in? out?
    follow "$2" "$3"
    if ! exists "$begun" || exists "$linked" || ours "$home" "$place"; then return 0; fi
    if exists "$home"; then discard "$keep"; fi
    discard "$part"
    discard "$place.tiercel-part"
    discard "$place"
    rm -f -- "$begun"
}

# -- what moves: kind, home, place, brings in, brings out -------------------------------------------------

moves() {
    :
@MOVES@
}

# Of every process; a process that ends meanwhile is none.
folders_in_use=$(readlink -- /proc/[0-9]*/cwd 2>/dev/null) || :
touched=
trap 'if [ $? -ne 0 ] && [ -n "$touched" ]; then say "stopped before the end; nothing is lost: run it again"; fi' EXIT
case "${1:-}" in
in)
    moves check_in
    check_room
    touched=1
    moves stage_in
    ;;
out)
    moves check_out
    check_room
    touched=1
    moves stage_out
    moves clean
    touched=
    exit "$failed"
    ;;
*)
    echo "usage: sh stage.sh in|out" >&2
    exit 2
    ;;
esac
