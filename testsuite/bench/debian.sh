# Source packages of Debian 12. Sourced.
#
# fetch FOLDER PACKAGE: unpacks a package's sources below the folder, unless they are there. Needs apt with access to
# Debian's sources.
# unpacked FOLDER PACKAGE: where they are.
# copy FOLDER PACKAGE COPY: copies them, so that no file seems older than what it was generated from.

# The mirror that this machine installs packages from.
mirror() { apt-cache policy | awk '$3 ~ /bookworm\/main/ && $2 ~ /debian$/ { print $2; exit }'; }

unpacked() { find "$1" -maxdepth 1 -type d -name "$2-[0-9]*" | head -1; }

fetch() {
    [ -z "$(unpacked "$1" "$2")" ] || return 0
    local apt=$1/apt
    mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
    local key=/usr/share/keyrings/debian-archive-keyring.gpg
    echo "deb-src [signed-by=$key] $(mirror) bookworm main" > "$apt/sources.list"
    local options=(-qq -o Dir::Etc::sourcelist="$apt/sources.list" -o Dir::Etc::sourceparts=-
        -o Dir::State::lists="$apt/lists" -o Dir::Cache="$apt/cache" -o APT::Sandbox::User=root)
    [ -n "$(find "$apt/lists" -name '*Sources*')" ] || apt-get "${options[@]}" update
    (cd "$1" && apt-get "${options[@]}" source "$2")
}

copy() {
    cp -r "$(unpacked "$1" "$2")" "$3"
    # Patches make some files newer than what is generated from them: nothing is to be generated again.
    find "$3" -exec touch -d '1 hour ago' {} +
    find "$3" -name aclocal.m4 -exec touch -d '3 minutes ago' {} +
    find "$3" \( -name 'config.h*in' -o -name config_h.in -o -name configure \) -exec touch -d '2 minutes ago' {} +
    find "$3" -iname makefile.in -exec touch -d '1 minute ago' {} +
}
