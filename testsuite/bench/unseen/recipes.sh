# Recipes: how each Debian source package is built and run. Sourced by `run`.
#
# build PROGRAM: in a copy of the sources, with $CC and $CXX; calls `keep` with the program that it built.
# start PROGRAM BINARY INPUT: replaces the shell by the program; INPUT is t (training) or e (evaluation).

# Lists of programs that are not used for tuning: nothing had been measured on the programs of a list before it was made.
# README.md says how they were chosen, and which ones are tuning programs since.
first="7zip astronomical-almanac clustalw cliquer dialign fastdnaml fasttree flac gaffitter gawk ghostscript glpk \
    grep halibut m4 mona mustang original-awk pari perl php8.2 ruby3.1 ssed tcl8.6 wordplay xdelta3"
fresh="bash busybox cppcheck dash fairymax fastlink git gnuplot groff indent jq libxml2 muscle swi-prolog units vim"
# berkeley-abc and ffmpeg were not measured yet.
newest="berkeley-abc clasp djvulibre eprover exuberant-ctags ffmpeg gifsicle minimap2 mujs ngspice opus \
    postgresql-15 python3.11 qhull wavpack"
last="discount gperf graphicsmagick gzip jimtcl libjpeg-turbo lz4 picosat prodigal x264"
# Most of them are in C++. flatbuffers and qpdf were not measured yet.
more="byacc flatbuffers jsonnet nauty ninja-build prank probcons qpdf swig wabt"
latest="aragorn bedtools cflow coreutils cscope diffutils file jbigkit libxslt lp-solve mdocml mruby newlisp tiff \
    tinyscheme twolame"
# Programs that were measured while the code of decisions changed.
seen="bc cmark flex lame mawk minisat2 nasm potrace zopfli clzip dialign-t palp phalanx unzip lunzip"
# Other versions of tuning programs.
tuned="brotli cadical hunspell libwebp libzstd tcc tidy-html5"

build() {
    case $1 in
        7zip)
            make -j2 -C CPP/7zip/Bundles/Alone -f makefile.gcc CC="$CC" CXX="$CXX" DISABLE_RAR=1 \
                CFLAGS_WARN_WALL=-w LOCAL_FLAGS= &&
            keep CPP/7zip/Bundles/Alone/_o/7za
            ;;
        aragorn) $CC -O2 -w aragorn*.c -lm -o out ;;
        astronomical-almanac)
            $CC -O2 -w -std=gnu89 -fcommon $(ls *.c | grep -v -e conjunct.c -e moonrise.c -e 404.c) m*404.c \
                v*404.c e*404.c j*404.c s*404.c u*404.c n*404.c p*404.c -lm -o out
            ;;
        bash)
            ./configure CC="$CC" CFLAGS="-O2 -w -std=gnu89" --disable-nls --without-bash-malloc &&
            make -j2 bash &&
            keep bash
            ;;
        bc) ./configure CC="$CC" CFLAGS="-O2 -w" && make -C lib && make -C bc && keep bc/bc ;;
        bedtools)
            make -j2 bin/bedtools CC="$CC" CXX="$CXX" BT_CXXFLAGS="-O2 -w -std=c++11" && keep bin/bedtools
            ;;
        berkeley-abc)
            make -j2 abc CC="$CC" CXX="$CXX" LD="$CXX" OPTFLAGS="-O2 -w -Wno-everything" ABC_USE_NO_READLINE=1 \
                ABC_USE_NO_PTHREADS=1 ARCHFLAGS="-DLIN64 -DSIZEOF_VOID_P=8 -DSIZEOF_LONG=8 -DSIZEOF_INT=4" &&
            keep abc
            ;;
        brotli)
            $CC -O2 -w -Ic/include c/common/*.c c/dec/*.c c/enc/*.c c/tools/brotli.c -lm -o out
            ;;
        busybox)
            # The time of the build is part of it, and moves its strings.
            export SOURCE_DATE_EPOCH=1000000000 &&
            sed -i -e 's/-Os/-O2/' -e 's/-falign-[a-z]*=1//' Makefile.flags &&
            make defconfig &&
            make -j2 CC="$CC" HOSTCC="$CC" SKIP_STRIP=y &&
            keep busybox_unstripped
            ;;
        byacc) ./configure CC="$CC" CFLAGS="-O2 -w" && make -j2 yacc && keep yacc ;;
        cadical)
            # Its exit status tells what it found.
            sed -i 's/^  return res;/  return 0;/' src/cadical.cpp &&
            ls src/*.cpp | grep -v mobical | xargs -P2 -n12 $CXX -O2 -w -DNDEBUG -DNBUILD -c &&
            $CXX *.o -o out
            ;;
        cflow)
            ./configure CC="$CC" CFLAGS="-O2 -w" --disable-nls && make -j2 -C gnu && make -j2 -C src && keep src/cflow
            ;;
        clasp)
            # Its exit status tells what it found.
            sed -i 's/return app.main(argc, argv);/app.main(argc, argv); return 0;/' app/main.cpp &&
            cmake -B build -DCMAKE_C_COMPILER="$CC" -DCMAKE_CXX_COMPILER="$CXX" -DCMAKE_BUILD_TYPE=Release \
                -DCMAKE_CXX_FLAGS=-w -DCMAKE_CXX_FLAGS_RELEASE="-O2 -DNDEBUG" -DCLASP_BUILD_WITH_THREADS=OFF &&
            make -j2 -C build clasp &&
            keep build/bin/clasp
            ;;
        cliquer) $CC -O2 -w cl.c cliquer.c graph.c reorder.c -lm -o out ;;
        clustalw) ./configure CC="$CC" CXX="$CXX" CXXFLAGS="-O2 -w -std=gnu++98" && make -j2 && keep src/clustalw2 ;;
        clzip) $CC -O2 -w -DPROGVERSION='"1.13"' *.c -o out ;;
        cmark)
            cmake -B build -DCMAKE_C_COMPILER="${CC%% *}" -DCMAKE_C_FLAGS="${CC#* } -w" -DCMAKE_C_FLAGS_RELEASE=-O2 \
                -DCMAKE_BUILD_TYPE=Release -DCMARK_TESTS=OFF -DCMARK_SHARED=OFF
            make -j2 -C build cmark_exe && keep build/src/cmark
            ;;
        coreutils)
            # Its configure refuses to run for root.
            FORCE_UNSAFE_CONFIGURE=1 ./configure CC="$CC" CFLAGS="-O2 -w" --disable-nls --disable-acl \
                --disable-xattr --without-selinux --without-libgmp --without-openssl &&
            echo 'built: $(BUILT_SOURCES)' >> Makefile &&
            make -j2 built &&
            make -j2 src/sort &&
            keep src/sort
            ;;
        cppcheck) make -j2 cppcheck CXX="$CXX" CXXFLAGS="-O2 -w -DNDEBUG" && keep cppcheck ;;
        cscope) ./configure CC="$CC" CFLAGS="-O2 -w -std=gnu89" && make -j2 -C src cscope && keep src/cscope ;;
        dash)
            # One of Debian's patches adds a file, but not to the makefile.
            ./configure CC="$CC" CFLAGS="-O2 -w" &&
            make -C src priv.o &&
            make -j2 LIBS=priv.o &&
            keep src/dash
            ;;
        dialign) cd src && $CC -O2 -w -std=gnu89 -fcommon -DCONS *.c -lm -o ../out ;;
        dialign-t)
            cd source && $CC -O2 -w -std=gnu89 -fcommon museq.c parameters.c io.c diag.c alig.c assemble.c prob.c \
                orf.c translate.c -lm -o ../out
            ;;
        diffutils)
            # Its exit status tells what it found.
            sed -i 's/exit (exit_status);/exit (0);/' src/diff.c &&
            ./configure CC="$CC" CFLAGS="-O2 -w" --disable-nls &&
            make -j2 -C lib &&
            make -C src version.h diff &&
            keep src/diff
            ;;
        discount) CC=$CC CFLAGS="-O2 -Wno-everything" ./configure.sh && make main.o && make markdown && keep markdown ;;
        djvulibre)
            autoreconf -i &&
            ./configure CC="$CC" CXX="$CXX" CFLAGS="-O2 -w" CXXFLAGS="-O2 -w -std=gnu++14" --disable-shared \
                --disable-desktopfiles --without-jpeg --without-tiff &&
            make -j2 -C libdjvu &&
            make -C tools cjb2 &&
            keep tools/cjb2
            ;;
        eprover)
            ./configure &&
            make -j2 CC="$CC" OPTFLAGS="-O2 -w -fno-common" &&
            keep PROVER/eprover
            ;;
        exuberant-ctags) ./configure CC="$CC" CFLAGS="-O2 -w -std=gnu89" && make -j2 ctags && keep ctags ;;
        fairymax) $CC -O2 -w -Wno-return-mismatch -std=gnu89 fairymax.c -o out ;;
        fastdnaml) $CC -O2 -w -std=gnu89 source/fastDNAml.c -lm -o out ;;
        fastlink)
            make -j2 -C 4.1P/src lodscore CC="$CC" OPTFLAG="-O2 -w -std=gnu89 -fcommon" CKPT=-DDOS &&
            keep 4.1P/src/lodscore
            ;;
        fasttree) $CC -O2 -w -DUSE_DOUBLE -funroll-loops fasttree.c -lm -o out ;;
        ffmpeg)
            # All filters, and a few codecs; without assembly.
            ./configure --cc="$CC" --optflags=-O2 --extra-cflags=-w --disable-autodetect --disable-doc \
                --disable-network --disable-pthreads --disable-debug --disable-x86asm --disable-inline-asm \
                --disable-ffplay --disable-ffprobe --disable-everything --enable-filters --enable-protocol=file,pipe \
                --enable-encoder=mpeg4,mjpeg,ffv1,jpeg2000,rawvideo,aac,ac3,flac,pcm_s16le \
                --enable-decoder=mpeg4,mjpeg,ffv1,h264,rawvideo,pcm_s16le,aac,flac,wrapped_avframe,pcm_f32le \
                --enable-muxer=avi,nut,wav,adts,ac3,flac,rawvideo --enable-demuxer=avi,nut,wav --enable-indev=lavfi &&
            make -j2 ffmpeg_g &&
            keep ffmpeg_g
            ;;
        file)
            # Its table of kinds is the same for all variants.
            ./configure CC="$CC" CFLAGS="-O2 -w" --disable-shared --disable-libseccomp --disable-zlib --disable-bzlib \
                --disable-xzlib &&
            make -j2 -C src &&
            make -C magic &&
            { [ -e "$scratch/file.mgc" ] || cp magic/magic.mgc "$scratch/file.mgc"; } &&
            keep src/file
            ;;
        flac)
            ./configure CC="$CC" CXX="$CXX" CFLAGS="-O2 -w" --disable-shared --disable-ogg --disable-cpplibs \
                --disable-doxygen-docs &&
            make -j2 -C src/share &&
            make -j2 -C src/libFLAC &&
            make -j2 -C src/flac &&
            keep src/flac/flac
            ;;
        flatbuffers)
            cmake -B build -DCMAKE_C_COMPILER="$CC" -DCMAKE_CXX_COMPILER="$CXX" -DCMAKE_BUILD_TYPE=Release \
                -DCMAKE_CXX_FLAGS=-Wno-everything -DCMAKE_CXX_FLAGS_RELEASE="-O2 -DNDEBUG" \
                -DFLATBUFFERS_BUILD_TESTS=OFF -DFLATBUFFERS_BUILD_FLATHASH=OFF &&
            make -j2 -C build flatc &&
            keep build/flatc
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
        gifsicle)
            autoreconf -i &&
            ./configure CC="$CC" CFLAGS="-O2 -w" --disable-gifview --disable-threads &&
            make -C src gifsicle &&
            keep src/gifsicle
            ;;
        git)
            make -j2 git CC="$CC" CFLAGS="-O2 -w" NO_CURL=1 NO_OPENSSL=1 NO_EXPAT=1 NO_GETTEXT=1 NO_TCLTK=1 NO_PERL=1 \
                NO_PYTHON=1 &&
            keep git
            ;;
        glpk) ./configure CC="$CC" CFLAGS="-O2 -w" --disable-shared && make -j2 && keep examples/glpsol ;;
        gperf) ./configure CC="$CC" CXX="$CXX" CXXFLAGS="-O2 -w -std=gnu++98" && make -j2 && keep src/gperf ;;
        graphicsmagick)
            ./configure CC="$CC" CXX="$CXX" CFLAGS="-O2 -w" CXXFLAGS="-O2 -w" --disable-shared --disable-openmp \
                --without-magick-plus-plus --without-perl --without-bzlib --without-dps --without-fpx --without-gs \
                --without-heif --without-jbig --without-webp --without-jpeg --without-jp2 --without-jxl \
                --without-lcms2 --without-lzma --without-png --without-tiff --without-trio --without-ttf \
                --without-wmf --without-xml --without-zlib --without-zstd --without-x --without-threads &&
            make -j2 utilities/gm &&
            keep utilities/gm
            ;;
        gnuplot)
            mkdir -p src/beos && touch src/beos/Makefile.in &&
            ./configure CC="$CC" CXX="$CXX" CFLAGS="-O2 -w" --without-x --without-gd --without-cairo --without-qt \
                --without-lua --without-latex --disable-wxwidgets --with-readline=builtin &&
            make -j2 -C src gnuplot &&
            keep src/gnuplot
            ;;
        grep) ./configure CC="$CC" CFLAGS="-O2 -w" --disable-nls && make -j2 && keep src/grep ;;
        groff)
            # The manual is not to be made.
            touch doc/groff.info &&
            ./configure CC="$CC" CXX="$CXX" CFLAGS="-O2 -w" CXXFLAGS="-O2 -w" --without-x &&
            echo 'built: $(BUILT_SOURCES)' >> Makefile &&
            make -j2 built &&
            make -j2 troff &&
            keep troff
            ;;
        gzip) ./configure CC="$CC" CFLAGS="-O2 -w" && make -j2 -C lib && make version.h gzip && keep gzip ;;
        halibut)
            cmake -B build -DCMAKE_C_COMPILER="$CC" -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_FLAGS_RELEASE=-O2 &&
            make -j2 -C build halibut && keep build/halibut
            ;;
        hunspell)
            ./configure CC="$CC" CXX="$CXX" CFLAGS="-O2 -w" CXXFLAGS="-O2 -w" --disable-shared --disable-nls &&
            make -j2 -C src/hunspell &&
            make -j2 -C src/parsers &&
            make -C src/tools hunspell &&
            keep src/tools/hunspell
            ;;
        indent)
            ./configure CC="$CC" CFLAGS="-O2 -w -include locale.h" --disable-nls &&
            make -C src AM_CFLAGS= &&
            keep src/indent
            ;;
        jbigkit) $CC -O2 -w -Ilibjbig libjbig/jbig.c libjbig/jbig_ar.c pbmtools/pbmtojbg.c -o out ;;
        jimtcl) ./configure CC="$CC" CFLAGS="-O2 -w" --disable-ssl --full && make -j2 jimsh && keep jimsh ;;
        jq)
            sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/.*/"&\\n"/' src/builtin.jq > src/builtin.inc &&
            echo '#define JQ_VERSION "1.6"' > src/version.h &&
            $CC -O2 -w -I. -D_GNU_SOURCE -DIEEE_8087 -DHAVE_ALLOCA_H -DHAVE_MEMMEM -DHAVE_TIMEGM -DHAVE_GMTIME_R \
                -DHAVE_TM_TM_GMT_OFF -DHAVE_STRPTIME -DHAVE_STRFTIME -DHAVE_PTHREAD_KEY_CREATE -DHAVE_POW -DHAVE_FLOOR \
                -DHAVE_SQRT -DHAVE_LOG -DHAVE_EXP $(ls src/*.c | grep -v inject) -lm -lpthread -o out
            ;;
        jsonnet)
            CFLAGS="-O2 -w" CXXFLAGS="-O2 -w -std=c++17" make -j2 jsonnet CC="$CC" CXX="$CXX" && keep jsonnet
            ;;
        lame) ./configure CC="$CC" CFLAGS="-O2 -w" --disable-shared && make -j2 && keep frontend/lame ;;
        libjpeg-turbo)
            cmake -B build -DCMAKE_C_COMPILER="${CC%% *}" -DCMAKE_C_FLAGS=-w -DCMAKE_C_FLAGS_RELEASE=-O2 \
                -DCMAKE_BUILD_TYPE=Release -DWITH_SIMD=OFF -DENABLE_SHARED=OFF -DWITH_TURBOJPEG=OFF &&
            make -j2 -C build cjpeg-static &&
            keep build/cjpeg-static
            ;;
        libwebp)
            ./configure CC="$CC" CFLAGS="-O2 -w" --disable-shared --disable-threading --disable-sse2 --disable-sse4.1 \
                --disable-png --disable-jpeg --disable-tiff --disable-gif --disable-gl --disable-sdl &&
            make -j2 -C sharpyuv &&
            make -j2 -C src &&
            make -j2 -C imageio &&
            make -C examples cwebp &&
            keep examples/cwebp
            ;;
        libxml2)
            ./configure CC="$CC" CFLAGS="-O2 -w" --disable-shared --without-python --without-lzma --without-iconv \
                --without-zlib --without-http --without-ftp --without-threads --without-readline --without-history &&
            make -j2 xmllint &&
            keep xmllint
            ;;
        libxslt)
            ./configure CC="$CC" CFLAGS="-O2 -w" --disable-shared --without-python --without-crypto --without-plugins &&
            make -j2 -C libxslt &&
            make -j2 -C libexslt &&
            make -C xsltproc xsltproc &&
            keep xsltproc/xsltproc
            ;;
        libzstd)
            $CC -O2 -w -DNDEBUG -DZSTD_DISABLE_ASM -DZSTD_LEGACY_SUPPORT=0 -Ilib -Ilib/common lib/common/*.c \
                lib/compress/*.c lib/decompress/*.c lib/dictBuilder/*.c programs/*.c -o out
            ;;
        lp-solve)
            $CC -O2 -w -std=gnu89 -I. -Ibfp -Ibfp/bfp_LUSOL -Ibfp/bfp_LUSOL/LUSOL -Icolamd -Ishared -DPARSER_LP \
                -DYY_NEVER_INTERACTIVE -DINVERSE_ACTIVE=INVERSE_LUSOL -DRoleIsExternalInvEngine lp_solve/lp_solve.c \
                $(ls lp_*.c | grep -v lp_solveDLL) ini.c fortify.c yacc_read.c \
                shared/*.c colamd/colamd.c bfp/bfp_LUSOL/lp_LUSOL.c bfp/bfp_LUSOL/LUSOL/lusol.c -lm -ldl -o out
            ;;
        lunzip) $CC -O2 -w -DPROGVERSION='"1.13"' *.c -o out ;;
        lz4) $CC -O2 -w -Ilib programs/*.c lib/*.c -o out ;;
        m4) ./configure CC="$CC" CFLAGS="-O2 -w" --disable-nls && make -j2 && keep src/m4 ;;
        mawk) ./configure CC="$CC" CFLAGS="-O2 -w" && make -j2 && keep mawk ;;
        mdocml) CC=$CC CFLAGS="-O2 -w" ./configure && make -j2 mandoc CC="$CC" CFLAGS="-O2 -w" && keep mandoc ;;
        minimap2) make -j2 minimap2 CC="$CC" CFLAGS="-O2 -w" sse2only=1 && keep minimap2 ;;
        minisat2)
            $CXX -O2 -Wno-everything -fpermissive -I. -D__STDC_LIMIT_MACROS -D__STDC_FORMAT_MACROS \
                minisat/core/*.cc minisat/utils/*.cc -lz -o out
            ;;
        mona)
            ./configure CC="$CC" CXX="$CXX" CFLAGS="-O2 -w" CXXFLAGS="-O2 -w" --disable-shared &&
            make -j2 &&
            keep Front/mona
            ;;
        mruby)
            cat > config.rb <<'END'
MRuby::Build.new do |build|
  build.toolchain :gcc
  %w[stdlib stdlib-ext math metaprog].each { |box| build.gembox box }
  build.gem core: "mruby-print"
  build.gem core: "mruby-bin-mruby"
end
END
            LD=$CC CFLAGS="-O2 -w" MRUBY_CONFIG=$PWD/config.rb rake -m -j2 && keep build/host/bin/mruby
            ;;
        mujs) $CC -O2 -w one.c main.c -lm -o out ;;
        muscle)
            # Without OpenMP.
            export SOURCE_DATE_EPOCH=1000000000 &&
            cd src && echo '"5.1"' > gitver.txt && cat > omp.h <<'END'
#pragma once
typedef int omp_lock_t;
static int omp_get_max_threads() { return 1; }
static int omp_get_thread_num() { return 0; }
#define omp_init_lock(lock)
#define omp_set_lock(lock)
#define omp_unset_lock(lock)
END
            ls *.cpp | xargs -P2 -n8 $CXX -O2 -w -I. -DNDEBUG -c && $CXX *.o -lm -lpthread -o ../out
            ;;
        mustang) $CXX -O2 -w src/*.cpp -o out ;;
        nasm) ./configure CC="$CC" CFLAGS="-O2 -w" && make -j2 nasm && keep nasm ;;
        nauty)
            # Its headers call one another by a folder that is made where they are installed.
            autoreconf -i &&
            ./configure CC="$CC" CFLAGS="-O2 -w" --disable-shared &&
            mkdir include && ln -s .. include/nauty &&
            $CC -O2 -w -DMAXN=WORDSIZE -Iinclude -I. geng.c gtools.c nauty.c nautil.c naugraph.c schreier.c naurng.c \
                -o out
            ;;
        newlisp) $CC -O2 -w -std=gnu89 -DSUPPORT_UTF8 -DNEWLISP64 -DLINUX newlisp.c nl-*.c pcre.c -lm -ldl -o out ;;
        ngspice)
            export SOURCE_DATE_EPOCH=1000000000 &&
            autoreconf -i &&
            ./configure CC="$CC" CXX="$CXX" CFLAGS="-O2 -w" --disable-debug --disable-xspice --disable-osdi \
                --disable-openmp --without-x --without-readline --without-fftw3 &&
            make -j2 -C src &&
            keep src/ngspice
            ;;
        ninja-build)
            ls src/*.cc | grep -v -e test -e win32 -e browse -e msvc -e getopt -e bench -e '\.in\.cc' |
                xargs -P2 -n8 $CXX -O2 -w -DNDEBUG -c &&
            $CXX *.o -o out
            ;;
        opus)
            ./configure CC="$CC" CFLAGS="-O2 -w" --disable-shared --disable-intrinsics --disable-asm --disable-rtcd \
                --disable-doc &&
            make -j2 opus_demo &&
            keep opus_demo
            ;;
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
        picosat)
            # Its exit status tells what it found.
            sed -i 's/return picosat_main (argc, argv);/picosat_main (argc, argv); return 0;/' main.c &&
            printf '#define PICOSAT_%s ""\n' CC CFLAGS VERSION > config.h &&
            $CC -O2 -w -DNDEBUG main.c app.c picosat.c version.c -o out
            ;;
        postgresql-15)
            # Neither it nor what makes its database refuses to run for root. The database is the same for all variants.
            export installed=$scratch/postgresql-15 &&
            sed -i 's/do_check_root = true/do_check_root = false/' src/backend/main/main.c &&
            sed -i 's/geteuid() == 0/0/' src/bin/initdb/initdb.c &&
            ./configure CC="$CC" CFLAGS="-O2 -w" --prefix="$installed" --without-readline --without-zlib \
                --without-icu &&
            make -C src/backend submake-generated-headers &&
            make -j2 -C src/backend &&
            keep src/backend/postgres &&
            if [ ! -e "$installed/data" ]; then
                for part in backend timezone backend/snowball pl/plpgsql interfaces/libpq bin/initdb; do
                    make -j2 -C src/$part install || return 1
                done
                export LD_LIBRARY_PATH=$installed/lib
                "$installed/bin/initdb" -U postgres --no-locale -E UTF8 -N -D "$installed/new" --wal-segsize=1 &&
                "$installed/bin/postgres" --single -F -j -D "$installed/new" postgres < "$inputs/postgresql-15.data" &&
                mv "$installed/new" "$installed/data"
            fi
            ;;
        potrace) ./configure CC="$CC" CFLAGS="-O2 -w" --disable-shared && make -j2 && keep src/potrace ;;
        prank) cd src && ls *.cpp | xargs -P2 -n8 $CXX -O2 -w -std=gnu++98 -I. -c && $CXX *.o -o ../out ;;
        probcons) $CXX -O2 -w -std=gnu++98 -DNumInsertStates=2 '-DVERSION="1.12"' Main.cc -o out ;;
        prodigal) $CC -O2 -w *.c -lm -o out ;;
        python3.11)
            # With the modules of C that need no libraries.
            export SOURCE_DATE_EPOCH=1000000000 &&
            { echo '*static*' && sed -n 's/^#\(_[bcdhjopqrsx]\|[abcmsu]\|_elem\|_md5\|pyexpat\)/\1/p' Modules/Setup |
                grep -v -e '-l' -e shm -e syslog -e spwd -e socket -e _crypt; } > Modules/Setup.local &&
            ./configure CC="$CC" CXX="$CXX" CFLAGS=-w OPT="-O2 -DNDEBUG" --without-ensurepip --without-pymalloc-debug &&
            make -j2 python &&
            keep python
            ;;
        qhull) $CC -O2 -w -Isrc src/libqhull_r/*.c src/qhull/unix_r.c -lm -o out ;;
        qpdf)
            cmake -B build -DCMAKE_C_COMPILER="$CC" -DCMAKE_CXX_COMPILER="$CXX" -DCMAKE_BUILD_TYPE=Release \
                -DCMAKE_CXX_FLAGS=-w -DCMAKE_CXX_FLAGS_RELEASE="-O2 -DNDEBUG" -DBUILD_SHARED_LIBS=OFF \
                -DREQUIRE_CRYPTO_NATIVE=ON -DUSE_IMPLICIT_CRYPTO=OFF -DBUILD_DOC=OFF &&
            make -j2 -C build qpdf &&
            keep build/qpdf/qpdf
            ;;
        ruby3.1)
            ./configure CC="$CC" CFLAGS="-O2 -w" optflags=-O2 debugflags= --disable-install-doc --disable-shared \
                --without-gmp &&
            make -j2 miniruby &&
            keep miniruby
            ;;
        ssed) ./configure CC="$CC" CFLAGS="-O2 -w -std=gnu89" --disable-nls && make -j2 && keep sed/sed ;;
        swi-prolog)
            # What it loads as it starts is the same for all variants.
            cmake -B build -DCMAKE_C_COMPILER="$CC" -DCMAKE_CXX_COMPILER="$CXX" -DCMAKE_BUILD_TYPE=Release \
                -DCMAKE_C_FLAGS=-w -DCMAKE_C_FLAGS_RELEASE=-O2 -DSWIPL_PACKAGES=OFF -DMULTI_THREADED=OFF -DUSE_GMP=OFF \
                -DUSE_TCMALLOC=OFF -DSWIPL_SHARED_LIB=OFF -DINSTALL_DOCUMENTATION=OFF -DBUILD_TESTING=OFF &&
            make -j2 -C build swipl prolog_home bootfile &&
            { [ -e "$scratch/swi-prolog" ] || cp -rL build/home "$scratch/swi-prolog"; } &&
            keep build/src/swipl
            ;;
        swig)
            ./configure CC="$CC" CXX="$CXX" CFLAGS="-O2 -w" CXXFLAGS="-O2 -w" --without-alllang --without-pcre \
                --disable-ccache &&
            make -j2 -C Source &&
            keep Source/eswig
            ;;
        tcc) ./configure --cc="$CC" --extra-cflags="-O2 -w" && make tcc && keep tcc ;;
        tcl8.6) cd unix && ./configure CC="$CC" CFLAGS="-O2 -w" --disable-shared && make -j2 tclsh && keep tclsh ;;
        tidy-html5)
            # Its exit status tells what it found.
            sed -i 's/^        return [12];/        return 0;/' console/tidy.c &&
            cmake -B built -DCMAKE_C_COMPILER="$CC" -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_FLAGS=-w \
                -DCMAKE_C_FLAGS_RELEASE=-O2 -DBUILD_SHARED_LIB=OFF &&
            make -j2 -C built tidy &&
            keep built/tidy
            ;;
        tiff)
            # It prints the time. Its inputs, which another of its programs writes, are the same for all variants.
            sed -i '/CreationDate/d' tools/tiff2ps.c &&
            libtoolize -c && autoreconf -i &&
            ./configure CC="$CC" CFLAGS="-O2 -w" --disable-shared --disable-cxx --disable-jpeg --disable-zlib \
                --disable-lzma --disable-zstd --disable-webp --disable-jbig --disable-lerc --without-x &&
            make -j2 -C port &&
            make -j2 -C libtiff &&
            make -C tools ppm2tiff tiff2ps &&
            { [ -e "$scratch/tiff.t" ] || tools/ppm2tiff -c lzw:2 "$inputs/libjpeg-turbo.t" "$scratch/tiff.t"; } &&
            { [ -e "$scratch/tiff.e" ] || tools/ppm2tiff -c g4 "$inputs/tiff.e" "$scratch/tiff.e"; } &&
            keep tools/tiff2ps
            ;;
        tinyscheme)
            $CC -O2 -w -I. -DSUN_DL=1 -DUSE_DL=1 -DUSE_MATH=1 -DUSE_ASCII_NAMES=0 scheme.c dynload.c -ldl -lm -o out
            ;;
        twolame)
            ./configure CC="$CC" CFLAGS="-O2 -w" --disable-shared &&
            make -j2 -C libtwolame &&
            make -C frontend &&
            keep frontend/twolame
            ;;
        units) ./configure CC="$CC" CFLAGS="-O2 -w" && make units && keep units ;;
        unzip)
            make -f unix/Makefile unzips CC="$CC" LD="$CC" LF2= CF="-O2 -w -I. -Ibzip2 -DUNIX -DLARGE_FILE_SUPPORT \
                -DUNICODE_SUPPORT -DNO_LCHMOD -DHAVE_DIRENT_H -DHAVE_TERMIOS_H" && keep unzip
            ;;
        vim)
            export SOURCE_DATE_EPOCH=1000000000 &&
            cd src &&
            ./configure CC="$CC" CFLAGS="-O2 -w" --with-features=huge --disable-gui --without-x --disable-nls \
                --disable-gpm --disable-selinux --disable-canberra --disable-libsodium --with-tlib=ncurses &&
            make -j2 vim &&
            keep vim
            ;;
        wabt)
            cmake -B build -DCMAKE_C_COMPILER="$CC" -DCMAKE_CXX_COMPILER="$CXX" -DCMAKE_BUILD_TYPE=Release \
                -DCMAKE_CXX_FLAGS=-w -DCMAKE_CXX_FLAGS_RELEASE="-O2 -DNDEBUG" -DBUILD_TESTS=OFF -DWITH_WASI=OFF \
                -DBUILD_LIBWASM=OFF &&
            make -j2 -C build wat2wasm &&
            keep build/wat2wasm
            ;;
        wavpack)
            ./configure CC="$CC" CFLAGS="-O2 -w" --disable-shared --disable-asm --disable-tests --disable-libcrypto \
                --without-iconv &&
            make -j2 cli/wavpack &&
            keep cli/wavpack
            ;;
        wordplay) $CC -O2 -w wordplay.c -o out ;;
        x264)
            ./configure --disable-asm --disable-thread --disable-avs --disable-swscale --disable-lavf --disable-ffms \
                --disable-gpac --disable-lsmash --disable-opencl --extra-cflags="-O2 -w" &&
            sed -i 's/ -O3 / -O2 /' config.mak && make -j2 x264 &&
            keep x264
            ;;
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
        # It prints its name.
        aragorn) case $3 in
            t) exec -a aragorn "$2" -t -l -br "$data" ;;
            e) exec -a aragorn "$2" -mt -w -seq "$data" ;;
            esac ;;
        astronomical-almanac) cd "$sources"/astronomical-almanac-*/ && exec "$2" < "$data" ;;
        bash | dash) exec "$2" "$data" ;;
        bc) exec "$2" -lq "$data" < /dev/null ;;
        bedtools) case $3 in
            t) exec "$2" intersect -wao -a "$data" -b "$data.other" ;;
            e) exec "$2" map -a "$data.other" -b "$data" -c 5,4 -o mean,distinct -s ;;
            esac ;;
        berkeley-abc) cd "$sources"/berkeley-abc-*/ && exec "$2" -f "$data" ;;
        brotli) case $3 in
            t) exec "$2" -c -q 9 "$data" ;;
            e) exec "$2" -c -q 5 -w 18 "$data" ;;
            esac ;;
        busybox) exec "$2" awk -f "$data" "$data.text" ;;
        byacc) case $3 in
            t) exec "$2" -o /dev/stdout "$data" ;;
            e) exec "$2" -v -b "$scratch/byacc" -o /dev/stdout "$data" ;;
            esac ;;
        cadical) exec "$2" -q "$data" ;;
        cflow) case $3 in
            t) exec "$2" -x "$data" ;;
            e) exec "$2" -r -T -d 5 "$data" ;;
            esac ;;
        clasp) exec "$2" -V0 -n 0 "$data" ;;
        cliquer) exec "$2" -q "$data" ;;
        clustalw)
            exec "$2" -infile="$data" -outfile="$scratch/clustalw.out" -newtree="$scratch/clustalw.tree" -quiet
            ;;
        clzip) exec "$2" -c "$data" ;;
        cmark) exec "$2" "$data" ;;
        coreutils)
            export LC_ALL=C
            case $3 in
                t) exec "$2" --parallel=1 -S 60M -k2,2 -k7n "$data" ;;
                e) exec "$2" --parallel=1 -S 60M -bdfu "$data" ;;
            esac
            ;;
        # It looks for its files where it seems to be.
        cppcheck)
            cd "$sources"/cppcheck-*/ && case $3 in
                t) exec -a "$PWD/cppcheck" "$2" -q --enable=all "$data.cpp" 2>&1 ;;
                e) exec -a "$PWD/cppcheck" "$2" -q --enable=all "$data.c" 2>&1 ;;
            esac
            ;;
        cscope)
            set -- "$2" "$3" -k -l -f "$scratch/cscope.${2##*/}"
            rm -f "$6" && case $2 in
                t) exec "$1" "${@:3}" "$data.c" < "$data" ;;
                e) exec "$1" "${@:3}" -c "$data.h" < "$data" ;;
            esac
            ;;
        dialign)
            cd "$scratch" &&
            DIALIGN2_DIR=$(echo "$sources"/dialign-2*/dialign2_dir) exec "$2" -fn dialign2 "$data"
            ;;
        dialign-t) exec "$2" "$sources"/dialign-t-*/conf "$data" "$scratch/dialign.out" ;;
        diffutils) case $3 in
            t) exec "$2" -u --label a --label b "$data.old" "$data" ;;
            e) exec "$2" -y -b -d -W 150 "$data.old" "$data" ;;
            esac ;;
        discount) case $3 in
            t) exec "$2" "$inputs/cmark.t" ;;
            e) exec "$2" -f toc,footnote,fencedcode,dlextra -T "$data" ;;
            esac ;;
        djvulibre) case $3 in
            t) exec "$2" -clean -dpi 300 "$data" "$scratch/djvulibre.out" ;;
            e) exec "$2" -lossy "$data" "$scratch/djvulibre.out" ;;
            esac ;;
        eprover) case $3 in
            t) cd "$sources"/eprover-*/EXAMPLE_PROBLEMS/SMOKETEST && exec "$2" --silent --auto BOO020-1.p ;;
            e) cd "$sources"/eprover-*/EXAMPLE_PROBLEMS/TPTP && exec "$2" --silent --auto SEU027+1.p ;;
            esac ;;
        exuberant-ctags) case $3 in
            t) exec "$2" --options=NONE --language-force=c++ --c++-kinds=+p --fields=+iaS -f - "$data.h" ;;
            e) exec "$2" --options=NONE --sort=no -f - "$data"/* ;;
            esac ;;
        # It tells the time it took on standard output.
        fairymax) cd "$sources"/fairymax-*/data && exec "$2" 18 < "$data" > "$scratch/fairymax.out" ;;
        fastdnaml) cd "$scratch" && exec "$2" < "$data" ;;
        # It writes where its input is.
        fastlink) cd "$data" && exec "$2" ;;
        fasttree) exec "$2" -quiet -nt "$data" ;;
        ffmpeg)
            set -- "$2" "$3" -nostdin -loglevel error -filter_threads 1 -threads 1 -bitexact -f lavfi
            case $2 in
                t)
                    exec "$1" "${@:3}" -i testsrc2=s=320x240:d=4 -i "$inputs/ffmpeg.wav" \
                        -vf "hue=h=t*40,unsharp,nlmeans=r=3:p=3,scale=400:300" -c:v mpeg4 -q:v 5 -c:a aac -f avi -
                    ;;
                e)
                    exec "$1" "${@:3}" -i mandelbrot=s=320x240:maxiter=900,trim=duration=2 -i "$inputs/ffmpeg.wav" \
                        -vf "gblur=2,edgedetect,rotate=t/3,noise=20,format=yuv420p" -af aecho,acompressor \
                        -c:v ffv1 -c:a flac -f nut -
                    ;;
            esac
            ;;
        file) cd "$data" && case $3 in
            t) exec "$2" -m "$scratch/file.mgc" -- * ;;
            e) exec "$2" -m "$scratch/file.mgc" -k --mime -- * ;;
            esac ;;
        flac) exec "$2" -8 -c -s "$data" ;;
        flatbuffers)
            mkdir -p "$scratch/flatbuffers" && cd "$scratch/flatbuffers" && case $3 in
                t)
                    ln -sf /dev/fd/3 flatbuffers.t_generated.h &&
                    exec "$2" --cpp --gen-object-api -o . "$data.fbs" 3>&1 > /dev/null
                    ;;
                e)
                    ln -sf /dev/fd/3 flatbuffers.e.bin &&
                    exec "$2" -b -o . "$data.fbs" "$data.json" 3>&1 > /dev/null
                    ;;
            esac
            ;;
        flex) exec "$2" -o /dev/null "$data" ;;
        gaffitter) exec "$2" - -t 2000 --di --seed 1 < "$data" ;;
        gawk) exec "$2" -f "$data.script" "$data" ;;
        ghostscript) case $3 in
            t) exec "$2" -q -dBATCH -dNOPAUSE -sDEVICE=ppmraw -r100 -o - "$data" ;;
            e) exec "$2" -q -dBATCH -dNOPAUSE -sDEVICE=pbmraw -r300 -o - "$data" ;;
            esac ;;
        gifsicle) case $3 in
            t) exec "$2" -O3 --colors 64 "$data" ;;
            e) exec "$2" --resize 2400x1900 --resize-method mix --dither --colors 24 "$data" ;;
            esac ;;
        # Without the configuration of who measures.
        git)
            export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null
            case $3 in
                t) exec "$2" --git-dir="$data" log -p --stat -M ;;
                e) exec "$2" --git-dir="$data" blame -w -M main -- hosts.log ;;
            esac
            ;;
        glpk) exec "$2" --lp "$data" --tmlim 100 ;;
        # It prints its name.
        gperf) case $3 in
            t) exec -a gperf "$2" -t -L ANSI-C "$data" ;;
            e) exec -a gperf "$2" -L C++ -7 -m 3 -k 1-8,'$' "$data" ;;
            esac ;;
        graphicsmagick) case $3 in
            t) exec "$2" convert "$data" -resize 300% -unsharp 2x1+1+0 -gamma 1.2 ppm:- ;;
            e) exec "$2" convert "$data" -rotate 17 -despeckle -edge 3 -colors 64 -negate miff:- ;;
            esac ;;
        gnuplot) exec "$2" -d "$data" ;;
        # grep stops at the first match where its output is /dev/null.
        grep) case $3 in
            t) exec "$2" -nE '(class|struct) [A-Z][a-z]+|^ *///.*(value|type)s?\b' "$data" > "$scratch/grep.out" ;;
            e) exec "$2" -i -e 'HOST1[0-9] .*took \([0-9]\)\1[0-9]* ms' -e 'retry$' "$data" > "$scratch/grep.out" ;;
            esac ;;
        groff)
            set -- "$2" "$3" "$sources"/groff-*/
            set -- "$1" "$2" -Tps -F "$inputs/groff" -F "$3font" -M "$3tmac"
            case $2 in
                t) exec "$1" "${@:3}" -ms "$data" ;;
                e) exec "$1" "${@:3}" -man "$data" ;;
            esac
            ;;
        gzip) exec "$2" -n -c "$data" ;;
        halibut) case $3 in
            t) exec "$2" --ps=/dev/stdout --text=/dev/null --html=/dev/null "$data" ;;
            e) exec "$2" --pdf=/dev/stdout "$data" ;;
            esac ;;
        hunspell) case $3 in
            t) exec "$2" -i ISO8859-1 -d "$data" -l "$data.text" ;;
            e) exec "$2" -i UTF-8 -d "$data" -m "$data.text" ;;
            esac ;;
        indent) case $3 in
            t) exec "$2" -kr -l100 -st "$data" ;;
            e) exec "$2" -gnu -st "$data" ;;
            esac ;;
        jbigkit) case $3 in
            t) exec "$2" -q "$data" ;;
            e) exec "$2" "$data" ;;
            esac ;;
        jimtcl) exec "$2" "$inputs/tcl8.6.$3" ;;
        jq) exec "$2" -f "$data" "$data.json" ;;
        jsonnet) exec "$2" -s 5000 "$data" ;;
        lame) exec "$2" --quiet "$data" - ;;
        libjpeg-turbo) case $3 in
            t) exec "$2" -quality 80 "$data" ;;
            e) exec "$2" -quality 92 -progressive -optimize -smooth 10 -sample 1x1 "$data" ;;
            esac ;;
        libwebp) case $3 in
            t) exec "$2" -quiet -q 80 -o - -- "$inputs/libjpeg-turbo.t" ;;
            e) exec "$2" -quiet -preset drawing -q 50 -m 5 -sharp_yuv -o - -- "$data" ;;
            esac ;;
        libxml2) case $3 in
            t) exec "$2" --format --schema "$data.xsd" "$data" ;;
            e) exec "$2" --html --xmlout "$data" ;;
            esac ;;
        libxslt) exec "$2" --novalid --nonet "$data.xsl" "$data" ;;
        libzstd) case $3 in
            t) exec "$2" -q -c -14 "$data" ;;
            e) exec "$2" -q -c -5 --long=24 "$data" ;;
            esac ;;
        lp-solve) exec "$2" -S3 "$data" ;;
        lunzip) exec "$2" -dc "$data" ;;
        lz4) case $3 in
            t) exec "$2" -z -c -3 "$data" ;;
            e) exec "$2" -z -c -7 -BD "$data" ;;
            esac ;;
        m4) exec "$2" "$data" ;;
        mawk | ssed) exec "$2" -f "$data.script" "$data" ;;
        mdocml) case $3 in
            t) exec "$2" -T utf8 "$data" ;;
            e) exec "$2" -T html "$data" ;;
            esac ;;
        minimap2) case $3 in
            t) exec "$2" -t1 -cx map-ont "$inputs/minimap2.genome" "$data" ;;
            e) exec "$2" -t1 -x sr --cs "$inputs/minimap2.genome" "$data" ;;
            esac ;;
        minisat2) exec "$2" -verb=0 "$data" ;;
        mona) exec "$2" -q "$data" ;;
        mruby | mujs) exec "$2" "$data" ;;
        muscle) case $3 in
            t) exec "$2" -align "$data" -output /dev/stdout -threads 1 -quiet ;;
            e) exec "$2" -super5 "$data" -output /dev/stdout -threads 1 -quiet ;;
            esac ;;
        # It tells its own running time on standard output.
        mustang)
            ln -sf /dev/fd/3 "$scratch/mustang.afasta" && case $3 in
                t) cd "$sources"/mustang-*/data/test/pdbs && set -- "$2" "$PWD/" *.pdb ;;
                e) cd "$inputs" && set -- "$2" "$inputs/" mustang.e.* ;;
            esac && exec "$1" -p "$2" -F fasta -s OFF -o "$scratch/mustang" -i "${@:3}" 3>&1 > /dev/null
            ;;
        nasm) exec "$2" -f elf64 "$data" -o /dev/null ;;
        nauty) case $3 in
            t) exec "$2" -q -c 10 9:17 ;;
            e) exec "$2" -q -t -b 14 15:17 ;;
            esac ;;
        newlisp) exec "$2" -n "$data" ;;
        # What it prints tells the time; its tables do not.
        ngspice) cd "$scratch" && exec "$2" -n -b "$data" ;;
        ninja-build) cd "$scratch" && case $3 in
            t) exec "$2" -f "$data" -n ;;
            e) exec "$2" -f "$data" -t commands ;;
            esac ;;
        opus) case $3 in
            t) exec "$2" -e voip 16000 1 20000 "$data" /dev/stdout ;;
            e) exec "$2" -e audio 48000 2 96000 "$data" /dev/stdout ;;
            esac ;;
        original-awk) exec "$2" -f "$data.script" "$data" ;;
        palp) exec "$2" -f < "$data" ;;
        pari) exec "$2" -q -f -s 256M "$data" < /dev/null ;;
        perl | ruby3.1 | tcl8.6) exec "$2" "$data" ;;
        phalanx) cd "$scratch" && exec "$2" -b- -l- -o- -x+ < "$data" ;;
        php8.2) exec "$2" -n "$data" ;;
        picosat) exec "$2" "$data" ;;
        # One at a time: its database allows no more.
        postgresql-15)
            exec 9> "$scratch/postgresql-15/lock" && flock 9 &&
            exec "$2" --single -F -j -D "$scratch/postgresql-15/data" postgres < "$data"
            ;;
        potrace) exec "$2" -s -o - "$data" ;;
        # It writes a file, here to standard output; what it prints tells its running time.
        prank)
            mkdir -p "$scratch/prank" && cd "$scratch/prank" && ln -sf /dev/fd/3 out.best.fas && case $3 in
                t) exec "$2" -d="$data" -o=out -once -seed=1 -quiet 3>&1 > /dev/null ;;
                e) exec "$2" -d="$data" -o=out -once -codon -F -seed=1 -quiet 3>&1 > /dev/null ;;
            esac
            ;;
        probcons) case $3 in
            t) exec "$2" "$data" ;;
            e) exec "$2" -c 4 -ir 0 -clustalw -pre 1 "$data" ;;
            esac ;;
        python3.11)
            export PYTHONHASHSEED=0 PYTHONPYCACHEPREFIX=$scratch/python3.11 PYTHONHOME=$scratch \
                PYTHONPATH=$(echo "$sources"/python3.11-*/Lib)
            exec "$2" -S -s "$data"
            ;;
        prodigal) case $3 in
            t) exec "$2" -q -i "$data" -f gff ;;
            e) exec "$2" -q -p meta -i "$data" -f sco ;;
            esac ;;
        qhull) case $3 in
            t) exec "$2" o < "$data" ;;
            e) exec "$2" v Qbb p < "$data" ;;
            esac ;;
        qpdf) case $3 in
            t) exec "$2" --static-id --qdf "$data" - ;;
            e) exec "$2" --static-id --linearize --object-streams=generate --compress-streams=n "$data" - ;;
            esac ;;
        swi-prolog) exec "$2" --home="$scratch/swi-prolog" -f none -q "$data" < /dev/null ;;
        # It removes what it wrote when it fails: not /dev/stdout.
        swig)
            export SWIG_LIB=$(echo "$sources"/swig-*/Lib)
            ln -sf /dev/fd/3 "$scratch/swig.out" && case $3 in
                t) exec "$2" -python -outdir "$scratch" -o "$scratch/swig.out" "$data" 3>&1 > /dev/null ;;
                e) exec "$2" -c++ -lua -o "$scratch/swig.out" "$data" 3>&1 > /dev/null ;;
            esac
            ;;
        tcc) case $3 in
            t) exec "$2" -nostdinc -c -o "$scratch/tcc.out" "$data.c" ;;
            e) exec "$2" -nostdinc -E "$data.c" ;;
            esac ;;
        tidy-html5) case $3 in
            t) exec "$2" -q --show-warnings no --force-output yes "$data" ;;
            e) exec "$2" -q -xml -i -w 60 "$inputs/libxml2.t" ;;
            esac ;;
        tiff) case $3 in
            t) exec "$2" "$scratch/tiff.t" ;;
            e) exec "$2" "$scratch/tiff.e" ;;
            esac ;;
        tinyscheme) TINYSCHEMEINIT=$(echo "$sources"/tinyscheme-*/init.scm) exec "$2" "$data" ;;
        twolame) case $3 in
            t) exec "$2" --quiet -r -s 48000 -N 2 -b 192 "$inputs/opus.e" - ;;
            e) exec "$2" --quiet -m m -V 5 -P 1 -E "$inputs/flac.t" - ;;
            esac ;;
        units) exec "$2" -q -1 -f "$sources"/units-*/definitions.units < "$data" ;;
        unzip) exec "$2" -p "$data" ;;
        vim) exec "$2" -u NONE -i NONE -n -N -es -S "$data" "$data.text" < /dev/null ;;
        wabt) case $3 in
            t) exec "$2" "$data" -o /dev/stdout ;;
            e) exec "$2" --debug-names -r "$data" -o /dev/stdout ;;
            esac ;;
        wavpack) case $3 in
            t) exec "$2" -q -hx3 "$data" -o - ;;
            e) exec "$2" -q -hh -x3 -b320 "$data" -o - ;;
            esac ;;
        wordplay) case $3 in
            t) exec "$2" thequickbrownfoxju -s -m5 -f "$sources"/wordplay-*/words721.txt ;;
            e) exec "$2" profileguidedcompil -s -n3 -f "$data" ;;
            esac ;;
        x264) case $3 in
            t) exec "$2" --quiet --no-progress --preset fast --input-res 352x288 -o /dev/stdout --muxer raw "$data" ;;
            e)
                exec "$2" --quiet --no-progress --preset slow --tune grain --crf 18 --input-res 320x240 \
                    -o /dev/stdout --muxer raw "$data"
                ;;
            esac ;;
        xdelta3) exec "$2" -e -c -A -s "$data.old" "$data" ;;
        zopfli) exec "$2" -c --i3 "$data" ;;
    esac
}
