/* What Oniguruma's configure script would find on a 64-bit Linux. */
#define HAVE_INTTYPES_H 1
#define HAVE_LIMITS_H 1
#define HAVE_PROTOTYPES 1
#define HAVE_STDARG_H 1
#define HAVE_STDLIB_H 1
#define HAVE_STRING_H 1
#define SIZEOF_INT 4
#define SIZEOF_LONG 8
#define SIZEOF_LONG_LONG 8
#define SIZEOF_SHORT 2
#define SIZEOF_VOIDP 8
#define STDC_HEADERS 1
