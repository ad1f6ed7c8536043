# Recipes: how each Debian source package is built and run. Sourced by `run`.
#
# build PROGRAM: in a copy of the sources, with $CC and $CXX, which contain the variant's flags; leaves ./out.
# start PROGRAM BINARY INPUT: replaces the shell by the program; INPUT is t (training) or e (evaluation).

programs="bc cmark lame mawk minisat2 nasm potrace zopfli clzip dialign-t fastdnaml fasttree palp ssed unzip"

build() {
    case $1 in
        bc) ./configure CC="$CC" CFLAGS="-O2 -w" && make -C lib && make -C bc && cp bc/bc out ;;
        clzip) $CC -O2 -w -DPROGVERSION='"1.13"' *.c -o out ;;
        cmark)
            cmake -B build -DCMAKE_C_COMPILER="${CC%% *}" -DCMAKE_C_FLAGS="${CC#* } -w" -DCMAKE_C_FLAGS_RELEASE=-O2 \
                -DCMAKE_BUILD_TYPE=Release -DCMARK_TESTS=OFF -DCMARK_SHARED=OFF
            make -j2 -C build cmark_exe && cp build/src/cmark out
            ;;
        dialign-t)
            cd source && $CC -O2 -w -std=gnu89 -fcommon museq.c parameters.c io.c diag.c alig.c assemble.c prob.c orf.c \
                translate.c -lm -o ../out
            ;;
        fastdnaml) $CC -O2 -w -std=gnu89 source/fastDNAml.c -lm -o out ;;
        fasttree) $CC -O2 -w -DUSE_DOUBLE -funroll-loops fasttree.c -lm -o out ;;
        lame) ./configure CC="$CC" CFLAGS="-O2 -w" --disable-shared && make -j2 && cp frontend/lame out ;;
        mawk) ./configure CC="$CC" CFLAGS="-O2 -w" && make -j2 && cp mawk out ;;
        minisat2) $CXX -O2 -Wno-everything -fpermissive -I. -D__STDC_LIMIT_MACROS -D__STDC_FORMAT_MACROS minisat/core/*.cc minisat/utils/*.cc -lz -o out ;;
        nasm) ./configure CC="$CC" CFLAGS="-O2 -w" && make -j2 nasm && cp nasm out ;;
        palp) $CC -O2 -w -std=gnu89 poly.c Coord.c Rat.c Vertex.c Polynf.c LG.c -lm -o out ;;
        potrace) ./configure CC="$CC" CFLAGS="-O2 -w" --disable-shared && make -j2 && cp src/potrace out ;;
        ssed) ./configure CC="$CC" CFLAGS="-O2 -w -std=gnu89" --disable-nls && make -j2 && cp sed/sed out ;;
        unzip)
            make -f unix/Makefile unzips CC="$CC" LD="$CC" LF2= CF="-O2 -w -I. -Ibzip2 -DUNIX -DLARGE_FILE_SUPPORT \
                -DUNICODE_SUPPORT -DNO_LCHMOD -DHAVE_DIRENT_H -DHAVE_TERMIOS_H" && cp unzip out
            ;;
        zopfli) $CC -O2 -w src/zopfli/*.c -lm -o out ;;
    esac
}

start() {
    local data=$inputs/$1.$3
    case $1 in
        bc) exec "$2" -lq "$data" < /dev/null ;;
        clzip) exec "$2" -c "$data" ;;
        cmark) exec "$2" "$data" ;;
        dialign-t) exec "$2" "$sources"/dialign-t-*/conf "$data" "$scratch/dialign.out" ;;
        fastdnaml) cd "$scratch" && exec "$2" < "$data" ;;
        fasttree) exec "$2" -quiet -nt "$data" ;;
        lame) exec "$2" --quiet "$data" - ;;
        mawk | ssed) exec "$2" -f "$data.script" "$data" ;;
        minisat2) exec "$2" -verb=0 "$data" ;;
        nasm) exec "$2" -f elf64 "$data" -o /dev/null ;;
        palp) exec "$2" -f < "$data" ;;
        potrace) exec "$2" -s -o - "$data" ;;
        unzip) exec "$2" -p "$data" ;;
        zopfli) exec "$2" -c --i3 "$data" ;;
    esac
}
