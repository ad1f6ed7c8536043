# Programs in Rust, from crates.io: `PACKAGE VERSION BINARY`, and how each runs. Sourced by `run`; `start PROGRAM BINARY
# INPUT` replaces the shell by the program; INPUT is t (training) or e (evaluation).

programs="jaq pulldown-cmark ripgrep xsv"

package() {
    case $1 in
        jaq) echo jaq 2.3.0 jaq ;;
        pulldown-cmark) echo pulldown-cmark 0.13.0 pulldown-cmark ;;
        ripgrep) echo ripgrep 14.1.1 rg ;;
        xsv) echo xsv 0.13.0 xsv ;;
    esac
}

start() {
    local data=$inputs/$1.$3
    case $1 in
        jaq) case $3 in
            t) exec "$2" -c 'group_by(.name) | map({n: .[0].name, v: map(.v) | add, t: map(.tags[]) | unique})' "$data" ;;
            e) exec "$2" '[paths] | length, ([.. | numbers] | add), ([.. | strings | ascii_upcase] | length)' "$data" ;;
            esac ;;
        pulldown-cmark) case $3 in
            t) exec "$2" "$data" ;;
            e) exec "$2" -T -F -L -S "$data" ;;
            esac ;;
        ripgrep) case $3 in
            t) exec "$2" -j1 --no-config -n -e 'w[aeiou]+l' -e '\bnor\w*' "$data" ;;
            e) exec "$2" -j1 --no-config -i -o '(?:[a-z]{3,6}\s+){2}[^aeiou\s]+$' "$data" ;;
            esac ;;
        xsv) case $3 in
            t) exec "$2" frequency "$data" ;;
            e) exec "$2" stats --everything "$data" ;;
            esac ;;
    esac
}
