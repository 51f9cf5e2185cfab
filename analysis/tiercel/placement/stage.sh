#!/bin/sh
# Puts files and folders where the plan wants them.
#   sh stage.sh in     before the program: copies them to their system and leaves links in their place
#   sh stage.sh out    after the program: brings results back and removes the links
# Nothing is removed before its copy is complete; run either again after an interruption. Two at once take turns.
#
# Beside HOME, where a file or folder belongs:
#   HOME.tiercel-home     the original, while a link lies in its place
#   HOME.tiercel-part     a copy that is not complete
#   HOME.tiercel-new      a complete folder that is about to take its place
#   HOME.tiercel-left     what the program left at PLACE after it had replaced the link
# Beside PLACE, where it lies while the program runs:
#   PLACE.tiercel-begun   what lies at PLACE is this script's; holds HOME where that was behind a link
#   PLACE.tiercel-linked  the link was made: what happened to it since, the program did
set -eu
LC_ALL=C
export LC_ALL
mask=$(umask)
umask 077
failed=0
devices=
lock=
locked=
said=
touched=
verb=${1:-}
newline='
'

say() { printf 'stage.sh: %s\n' "$*" >&2; }

refuse() {
    if [ -z "$touched$locked${TIERCEL_STAGE_AGAIN:-}" ]; then
        # Another run of this script may be half done: look once more, after it.
        TIERCEL_STAGE_AGAIN=1
        export TIERCEL_STAGE_AGAIN
        awaited=
        moves await_others
        exec sh "$0" "$verb"
    fi
    say "$*"
    exit 1
}

exists() { [ -e "$1" ] || [ -L "$1" ]; }

target_of() { # sets target: where a link points to, to the last byte
    target=$(readlink -n -- "$1" && printf x)
    target=${target%x}
}

changed() { # path stamp: did anything there change after the stamp was made?
    if [ ! -e "$2" ] || [ -s "$2" ]; then return 0; fi # nobody knows
    # By times that no program can set. A find that does not know them complains, and then it may have.
    find "$1" -cnewer "$2" 2>&1 | grep -q ''
}

settle() { # waits until a change at place would be newer than its stamp, on storage with coarse times too
    tries=0
    while [ "$tries" -lt 150 ]; do
        rm -f -- "$place.tiercel-now"
        : >"$place.tiercel-now"
        if changed "$place.tiercel-now" "$linked"; then break; fi
        tries=$((tries + 1))
        sleep 0.01 2>/dev/null || sleep 1
    done
    rm -f -- "$place.tiercel-now"
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
    if [ -s "$place.tiercel-begun" ] && [ ! -L "$place.tiercel-begun" ]; then # the program may have replaced a link before it
        home=$(cat -- "$place.tiercel-begun" && printf x)
        home=${home%x}
    fi
    behind=
    if [ "$home" != "$1" ]; then behind=$home; fi
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

# -- one at a time ----------------------------------------------------------------------------------------

is_there() { # process of this node
    [ -d "/proc/$1" ] || kill -0 "$1" 2>/dev/null
}

await_others() { # kind home
    if [ -n "$awaited" ]; then return 0; fi
    awaited=1
    near "$2"
    sleep 0.1 2>/dev/null || sleep 1
    while holder=$(readlink -- "$near/.tiercel-staging" 2>/dev/null) && is_there "${holder%%@*}"; do sleep 1; done
}

take_lock() { # kind home: beside the first home, for the whole script; after a look, which may refuse
    if [ -n "$lock" ]; then return 0; fi
    near "$2"
    lock=$near/.tiercel-staging
    host=$(uname -n)
    while ! ln -s -- "$$@$host" "$lock" 2>/dev/null; do
        holder=$(readlink -- "$lock" 2>/dev/null) || holder=
        case $holder in
        '') exists "$lock" && refuse "$lock: is not of this script: move it away" ;;
        *@"$host")
            if ! is_there "${holder%%@*}"; then # it was killed
                if mv -- "$lock" "$lock.$$" 2>/dev/null; then rm -f -- "$lock.$$"; fi
                continue
            fi
            ;;
        esac
        if [ -z "$said" ]; then
            said=1
            say "waiting for $holder, which stages here (if it is not there any more, remove $lock)"
        fi
        sleep 1
    done
    locked=1
}

# -- what is looked at before anything is touched ---------------------------------------------------------

mounted() { # mount point of a storage that the plan uses
    [ -r /proc/self/mountinfo ] || return 0
    while read -r _ _ _ _ point _; do
        if [ "$point" = "$1" ]; then return 0; fi
    done </proc/self/mountinfo
    refuse "$1: is not mounted; nothing was touched"
}

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
    *"$newline$real$newline"* | *"$newline$real/"*)
        for process in /proc/[0-9]*; do
            at=$(readlink -n -- "$process/cwd" 2>/dev/null && printf x) || continue
            case ${at%x}/ in
            "$real"/*) users="$users ${process#/proc/}" ;;
            esac
        done
        ;;
    esac
}

writers_of() { # folder, of which users_of was asked: sets writers, the processes that write to files in it
    writers=
    case $newline$files_in_use in
    *"$newline$real/"*) ;;
    *) return 0 ;;
    esac
    for descriptor in /proc/[0-9]*/fd/*; do
        at=$(readlink -n -- "$descriptor" 2>/dev/null && printf x) || continue
        case $at in
        "$real"/*) ;;
        *) continue ;;
        esac
        process=${descriptor%/fd/*}
        while read -r word flags; do
            case $word$flags in
            flags:*[12]) writers="$writers ${process#/proc/}" ;; # O_WRONLY, O_RDWR
            esac
        done 2>/dev/null <"$process/fdinfo/${descriptor##*/}" || :
    done
}

check_links() { # folder: a relative link that leads out of it would lead elsewhere
    link=$(find "$1" -type l -exec sh -c '
        for link; do
            target=$(readlink -- "$link")
            inside=${link#"$0"/}
            while :; do
                case $target in
                ../*) target=${target#../} ;;
                ..) target= ;;
                *) break ;;
                esac
                case $inside in
                */*) inside=${inside#*/} ;;
                *) printf "%s\n" "$link"; break ;;
                esac
            done
        done' "$1" {} + | head -n 1)
    [ -z "$link" ] || refuse "$link: leads out of $1 by a relative path, which would lead elsewhere: make it absolute"
}

check_folder() { # folder
    if mounts_in "$1"; then refuse "$1: is or holds a mount point, which cannot be moved"; fi
    users_of "$1"
    [ -z "$users" ] || refuse "$1: is the working folder of process$users: leave it first (cd /)"
    writers_of "$1"
    [ -z "$writers" ] || refuse "$1: process$writers has files open in it for writing: let it end first"
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
    if [ "$1" = folder ] && [ -d "$source" ]; then
        check_folder "$source"
        check_links "$source"
    fi
    if [ -L "$begun" ] || [ -L "$linked" ]; then refuse "$begun: is a link, and not of this script: move it away"; fi
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
    if ours "$home" "$place" && comes_out "$1" "$4" "$5"; then size_of "$place"; fi
    copy=$size
    size_of "$part"
    if [ "$copy" -gt "$size" ]; then copy=$((copy - size)); else copy=0; fi
    need "$home" "$copy"
}

# -- before the program -----------------------------------------------------------------------------------

copy_to_place() { # from
    printf %s "$behind" >"$begun"
    discard "$place.tiercel-part"
    discard "$place"
    cp -a -- "$1" "$place.tiercel-part"
    mv -- "$place.tiercel-part" "$place"
}

make_place() { # kind
    printf %s "$behind" >"$begun"
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
    if [ ! -O "$folder" ] && [ "$(id -u)" != 0 ]; then refuse "$folder: belongs to another user"; fi
    if ours "$home" "$place"; then
        if ! exists "$place"; then
            case $1$4$5 in folder00) from= ;; *) from=$keep ;; esac
            if exists "$from"; then copy_to_place "$from"; else make_place "$1"; fi
            stamp "$1"
        elif ! exists "$linked"; then
            printf unknown >"$linked" # cut off here, or in `out`: then the program may have changed it
        fi
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
    stamp "$1"
}

stamp() { # kind
    rm -f -- "$linked"
    : >"$linked"
    if [ "$1" = folder ]; then settle; else unsettled=1; fi
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
    discard "$1.tiercel-new"
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

without_link() { # kind in? out?: the program removed the link, renamed it, or put something of its own there
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
    other=
    # Of what was not there before and is not expected to stay, nothing is kept: temporary files.
    if { [ "$3" = 1 ] || exists "$keep"; } && comes_out "$@" && ! same "$place" "$keep"; then other=1; fi
    # Removed, or renamed to where nobody looks: who knows.
    if ! exists "$home" && exists "$keep"; then other=1; fi
    if [ -z "$found" ] && [ -n "$other" ] && exists "$place" && ! same "$place" "$home"; then
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

comes_out() { # kind in? out?
    exists "$place" || return 1
    if [ "$3" = 1 ]; then return 0; fi
    if [ "$1$2" = folder0 ]; then return 1; fi # of temporary files
    # What is not expected to come out, and is new or changed all the same.
    ! exists "$keep" || changed "$place" "$linked"
}

stage_out() { # kind home place in? out?
    follow "$2" "$3"
    if exists "$new" && ours "$home" "$place" && exists "$place"; then
        discard "$new" # the program may have written since that copy was made
    fi
    if exists "$new" && { ours "$home" "$place" || ! exists "$home"; }; then
        rm -f -- "$linked"
        rm -f -- "$home"
        mv -- "$new" "$home"
        return 0
    fi
    if exists "$new"; then refuse "$new: is this folder's newest state, but $home is there again: remove one"; fi
    if ours "$home" "$place"; then
        if comes_out "$1" "$4" "$5"; then
            bring "$home"
            return 0
        fi
        # A file that was not there before need not be there now; all else was.
        if ! exists "$place" && { [ "$1" = folder ] || exists "$keep" || ! exists "$begun"; }; then
            say "$home: its copy is gone (a restart, a clean-up?): what was there before the program is put back"
            failed=1
        fi
        rm -f -- "$linked"
        rm -f -- "$home"
    elif exists "$linked"; then
        without_link "$1" "$4" "$5"
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
    rm -f -- "$place.tiercel-now"
    rm -f -- "$begun"
}

# -- what moves: kind, home, place, brings in, brings out -------------------------------------------------

moves() {
    :
@MOVES@
}

storages() {
    :
@MOUNTS@
}

# Of every process; a process that ends meanwhile is none.
folders_in_use=$(readlink -- /proc/[0-9]*/cwd 2>/dev/null) || :
files_in_use=$newline$(readlink -- /proc/[0-9]*/fd/* 2>/dev/null) || :
unsettled=
look() { # in|out
    devices=
    last=
    moves "check_$1"
    check_room
}
the_end() {
    if [ "$1" -ne 0 ] && [ -n "$touched" ]; then say "stopped before the end; nothing is lost: run it again"; fi
    if [ -n "$locked" ]; then rm -f -- "$lock"; fi
}
trap 'the_end $?' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
case "${1:-}" in
in)
    storages
    look in
    moves take_lock
    if [ -n "$said" ]; then look in; fi
    touched=1
    moves stage_in
    if [ -n "$unsettled" ]; then settle; fi
    ;;
out)
    storages
    look out
    moves take_lock
    if [ -n "$said" ]; then look out; fi
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
