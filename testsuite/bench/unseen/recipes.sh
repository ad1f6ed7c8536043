# Recipes: how each Debian source package is built and run. Sourced by `run`.
#
# build PROGRAM: in a copy of the sources, with $CC and $CXX; calls `keep` with the program that it built.
# start PROGRAM BINARY INPUT: replaces the shell by the program; INPUT is t (training) or e (evaluation).

# Programs whose figures are the verdict, and programs that were measured while the code of decisions changed.
verdict="7zip astronomical-almanac clustalw cliquer dialign fastdnaml fasttree flac gaffitter gawk ghostscript glpk \
    grep halibut m4 mona mustang original-awk pari perl php8.2 ruby3.1 ssed tcl8.6 wordplay xdelta3"
seen="bc cmark flex lame mawk minisat2 nasm potrace zopfli clzip dialign-t palp phalanx unzip lunzip"

build() {
    case $1 in
        7zip)
            make -j2 -C CPP/7zip/Bundles/Alone -f makefile.gcc CC="$CC" CXX="$CXX" DISABLE_RAR=1 \
                CFLAGS_WARN_WALL=-w LOCAL_FLAGS= &&
            keep CPP/7zip/Bundles/Alone/_o/7za
            ;;
        astronomical-almanac)
            $CC -O2 -w -std=gnu89 -fcommon $(ls *.c | grep -v -e conjunct.c -e moonrise.c -e 404.c) m*404.c \
                v*404.c e*404.c j*404.c s*404.c u*404.c n*404.c p*404.c -lm -o out
            ;;
        bc) ./configure CC="$CC" CFLAGS="-O2 -w" && make -C lib && make -C bc && keep bc/bc ;;
        cliquer) $CC -O2 -w cl.c cliquer.c graph.c reorder.c -lm -o out ;;
        clustalw) ./configure CC="$CC" CXX="$CXX" CXXFLAGS="-O2 -w -std=gnu++98" && make -j2 && keep src/clustalw2 ;;
        clzip) $CC -O2 -w -DPROGVERSION='"1.13"' *.c -o out ;;
        cmark)
            cmake -B build -DCMAKE_C_COMPILER="${CC%% *}" -DCMAKE_C_FLAGS="${CC#* } -w" -DCMAKE_C_FLAGS_RELEASE=-O2 \
                -DCMAKE_BUILD_TYPE=Release -DCMARK_TESTS=OFF -DCMARK_SHARED=OFF
            make -j2 -C build cmark_exe && keep build/src/cmark
            ;;
        dialign) cd src && $CC -O2 -w -std=gnu89 -fcommon -DCONS *.c -lm -o ../out ;;
        dialign-t)
            cd source && $CC -O2 -w -std=gnu89 -fcommon museq.c parameters.c io.c diag.c alig.c assemble.c prob.c \
                orf.c translate.c -lm -o ../out
            ;;
        fastdnaml) $CC -O2 -w -std=gnu89 source/fastDNAml.c -lm -o out ;;
        fasttree) $CC -O2 -w -DUSE_DOUBLE -funroll-loops fasttree.c -lm -o out ;;
        flac)
            ./configure CC="$CC" CXX="$CXX" CFLAGS="-O2 -w" --disable-shared --disable-ogg --disable-cpplibs \
                --disable-doxygen-docs &&
            make -j2 -C src/share &&
            make -j2 -C src/libFLAC &&
            make -j2 -C src/flac &&
            keep src/flac/flac
            ;;
        flex)
            ./configure CC="$CC" CFLAGS="-O2 -w -D_GNU_SOURCE" --disable-shared --disable-nls &&
            make -j2 -C src &&
            keep src/flex
            ;;
        gaffitter) $CXX -O2 -w -Isrc -Isrc/util -Isrc/optimizers $(find src -name '*.cc') -o out ;;
        gawk)
            ./configure CC="$CC" CFLAGS="-O2 -w" --disable-nls --disable-extensions --disable-mpfr &&
            make -j2 -C support &&
            make -j2 gawk &&
            keep gawk
            ;;
        ghostscript)
            # Of Debian's libraries, only those that it cannot be built without. Clang 22 refuses some of its pointers.
            VARIANT= ./configure CC="$CC" --without-x --disable-gtk --disable-cups --disable-dbus --disable-fontconfig \
                --without-libidn --without-libpaper --without-ijs --without-libtiff --without-pcl --disable-contrib \
                --without-tesseract --disable-threading &&
            make -j2 XCFLAGS="-w -Wno-incompatible-pointer-types" &&
            keep bin/gs
            ;;
        glpk) ./configure CC="$CC" CFLAGS="-O2 -w" --disable-shared && make -j2 && keep examples/glpsol ;;
        grep) ./configure CC="$CC" CFLAGS="-O2 -w" --disable-nls && make -j2 && keep src/grep ;;
        halibut)
            cmake -B build -DCMAKE_C_COMPILER="$CC" -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_FLAGS_RELEASE=-O2 &&
            make -j2 -C build halibut && keep build/halibut
            ;;
        lame) ./configure CC="$CC" CFLAGS="-O2 -w" --disable-shared && make -j2 && keep frontend/lame ;;
        lunzip) $CC -O2 -w -DPROGVERSION='"1.13"' *.c -o out ;;
        m4) ./configure CC="$CC" CFLAGS="-O2 -w" --disable-nls && make -j2 && keep src/m4 ;;
        mawk) ./configure CC="$CC" CFLAGS="-O2 -w" && make -j2 && keep mawk ;;
        minisat2)
            $CXX -O2 -Wno-everything -fpermissive -I. -D__STDC_LIMIT_MACROS -D__STDC_FORMAT_MACROS \
                minisat/core/*.cc minisat/utils/*.cc -lz -o out
            ;;
        mona)
            ./configure CC="$CC" CXX="$CXX" CFLAGS="-O2 -w" CXXFLAGS="-O2 -w" --disable-shared &&
            make -j2 &&
            keep Front/mona
            ;;
        mustang) $CXX -O2 -w src/*.cpp -o out ;;
        nasm) ./configure CC="$CC" CFLAGS="-O2 -w" && make -j2 nasm && keep nasm ;;
        original-awk)
            bison -d -y -o awkgram.tab.c awkgram.y &&
            gcc -w maketab.c -o maketab &&
            ./maketab awkgram.tab.h > proctab.c &&
            $CC -O2 -w awkgram.tab.c b.c main.c parse.c proctab.c tran.c lib.c run.c lex.c -lm -o out
            ;;
        palp) $CC -O2 -w -std=gnu89 poly.c Coord.c Rat.c Vertex.c Polynf.c LG.c -lm -o out ;;
        pari)
            VARIANT= CC="$CC" CFLAGS="-O2 -w" ./Configure --without-gmp --without-readline --graphic=none --static &&
            cd O* &&
            make -j2 gp-sta &&
            keep gp-sta
            ;;
        perl)
            # Without the variant's flags: Configure drops -fno-strict-aliasing where a profile makes clang warn.
            if [ -e "$scratch/perl.config" ]; then
                cp "$scratch/perl.config" config.sh && ./Configure -S
            else
                VARIANT= ./Configure -des -Dcc="$CC" -Doptimize=-O2 -Uusedl -Dcf_email=x@y.z &&
                cp config.sh "$scratch/perl.config"
            fi &&
            make -j2 miniperl &&
            keep miniperl
            ;;
        phalanx)
            $CC -O2 -w -std=gnu89 -fcommon -DGNUFUN '-DPBOOK_DIR="."' '-DSBOOK_DIR="."' '-DLEARN_DIR="."' \
                '-DLEARN_FILE="learn"' $(ls *.c | grep -v getopt) -lm -o out
            ;;
        php8.2)
            ./configure CC="$CC" CXX="$CXX" CFLAGS="-O2 -w -fno-unique-internal-linkage-names" \
                --disable-all --enable-mbstring --disable-mbregex \
                --enable-bcmath --enable-calendar --enable-ctype --enable-exif --enable-ftp --enable-tokenizer \
                --enable-filter --enable-sockets --enable-session --enable-pcntl --enable-posix --enable-shmop \
                --disable-cgi --disable-phpdbg --without-pcre-jit &&
            make -j2 cli &&
            keep sapi/cli/php
            ;;
        potrace) ./configure CC="$CC" CFLAGS="-O2 -w" --disable-shared && make -j2 && keep src/potrace ;;
        ruby3.1)
            ./configure CC="$CC" CFLAGS="-O2 -w" optflags=-O2 debugflags= --disable-install-doc --disable-shared \
                --without-gmp &&
            make -j2 miniruby &&
            keep miniruby
            ;;
        ssed) ./configure CC="$CC" CFLAGS="-O2 -w -std=gnu89" --disable-nls && make -j2 && keep sed/sed ;;
        tcl8.6) cd unix && ./configure CC="$CC" CFLAGS="-O2 -w" --disable-shared && make -j2 tclsh && keep tclsh ;;
        unzip)
            make -f unix/Makefile unzips CC="$CC" LD="$CC" LF2= CF="-O2 -w -I. -Ibzip2 -DUNIX -DLARGE_FILE_SUPPORT \
                -DUNICODE_SUPPORT -DNO_LCHMOD -DHAVE_DIRENT_H -DHAVE_TERMIOS_H" && keep unzip
            ;;
        wordplay) $CC -O2 -w wordplay.c -o out ;;
        xdelta3)
            ./configure CC="$CC" CXX="$CXX" CFLAGS="-O2 -w" --without-liblzma && make xdelta3 && keep xdelta3
            ;;
        zopfli) $CC -O2 -w src/zopfli/*.c -lm -o out ;;
    esac
}

start() {
    local data=$inputs/$1.$3
    case $1 in
        7zip) exec "$2" a -mmt1 -txz -si -so -an < "$data" ;;
        astronomical-almanac) cd "$sources"/astronomical-almanac-*/ && exec "$2" < "$data" ;;
        bc) exec "$2" -lq "$data" < /dev/null ;;
        cliquer) exec "$2" -q "$data" ;;
        clustalw)
            exec "$2" -infile="$data" -outfile="$scratch/clustalw.out" -newtree="$scratch/clustalw.tree" -quiet
            ;;
        clzip) exec "$2" -c "$data" ;;
        cmark) exec "$2" "$data" ;;
        dialign)
            cd "$scratch" &&
            DIALIGN2_DIR=$(echo "$sources"/dialign-2*/dialign2_dir) exec "$2" -fn dialign2 "$data"
            ;;
        dialign-t) exec "$2" "$sources"/dialign-t-*/conf "$data" "$scratch/dialign.out" ;;
        fastdnaml) cd "$scratch" && exec "$2" < "$data" ;;
        fasttree) exec "$2" -quiet -nt "$data" ;;
        flac) exec "$2" -8 -c -s "$data" ;;
        flex) exec "$2" -o /dev/null "$data" ;;
        gaffitter) exec "$2" - -t 2000 --di --seed 1 < "$data" ;;
        gawk) exec "$2" -f "$data.script" "$data" ;;
        ghostscript) case $3 in
            t) exec "$2" -q -dBATCH -dNOPAUSE -sDEVICE=ppmraw -r100 -o - "$data" ;;
            e) exec "$2" -q -dBATCH -dNOPAUSE -sDEVICE=pbmraw -r300 -o - "$data" ;;
            esac ;;
        glpk) exec "$2" --lp "$data" --tmlim 100 ;;
        # grep stops at the first match where its output is /dev/null.
        grep) case $3 in
            t) exec "$2" -nE '(class|struct) [A-Z][a-z]+|^ *///.*(value|type)s?\b' "$data" > "$scratch/grep.out" ;;
            e) exec "$2" -i -e 'HOST1[0-9] .*took \([0-9]\)\1[0-9]* ms' -e 'retry$' "$data" > "$scratch/grep.out" ;;
            esac ;;
        halibut) case $3 in
            t) exec "$2" --ps=/dev/stdout --text=/dev/null --html=/dev/null "$data" ;;
            e) exec "$2" --pdf=/dev/stdout "$data" ;;
            esac ;;
        lame) exec "$2" --quiet "$data" - ;;
        lunzip) exec "$2" -dc "$data" ;;
        m4) exec "$2" "$data" ;;
        mawk | ssed) exec "$2" -f "$data.script" "$data" ;;
        minisat2) exec "$2" -verb=0 "$data" ;;
        mona) exec "$2" -q "$data" ;;
        # It tells its own running time on standard output.
        mustang)
            ln -sf /dev/fd/3 "$scratch/mustang.afasta" && case $3 in
                t) cd "$sources"/mustang-*/data/test/pdbs && set -- "$2" "$PWD/" *.pdb ;;
                e) cd "$inputs" && set -- "$2" "$inputs/" mustang.e.* ;;
            esac && exec "$1" -p "$2" -F fasta -s OFF -o "$scratch/mustang" -i "${@:3}" 3>&1 > /dev/null
            ;;
        nasm) exec "$2" -f elf64 "$data" -o /dev/null ;;
        original-awk) exec "$2" -f "$data.script" "$data" ;;
        palp) exec "$2" -f < "$data" ;;
        pari) exec "$2" -q -f -s 256M "$data" < /dev/null ;;
        perl | ruby3.1 | tcl8.6) exec "$2" "$data" ;;
        phalanx) cd "$scratch" && exec "$2" -b- -l- -o- -x+ < "$data" ;;
        php8.2) exec "$2" -n "$data" ;;
        potrace) exec "$2" -s -o - "$data" ;;
        unzip) exec "$2" -p "$data" ;;
        wordplay) case $3 in
            t) exec "$2" thequickbrownfoxju -s -m5 -f "$sources"/wordplay-*/words721.txt ;;
            e) exec "$2" profileguidedcompil -s -n3 -f "$data" ;;
            esac ;;
        xdelta3) exec "$2" -e -c -A -s "$data.old" "$data" ;;
        zopfli) exec "$2" -c --i3 "$data" ;;
    esac
}
