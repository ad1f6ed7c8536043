// Marks: what the count tests' programs say about themselves. MARK(n) counts in memory that the test reads, and calls a function
// that is known to return and is not instrumented; the test finds the blocks with that call and compares.
#ifndef COUNT_MARKS_H
#define COUNT_MARKS_H
#ifdef __cplusplus
extern "C" {
#endif
#define COUNT_PURE __attribute__((pure))
extern unsigned long *count_marks;
extern volatile int count_sink, count_yes;
// From here on marks are counted in the next region: what a child does is told apart from what its parent does.
void count_next_region(void);
int mark0(void) COUNT_PURE;
int mark1(void) COUNT_PURE;
int mark2(void) COUNT_PURE;
int mark3(void) COUNT_PURE;
int mark4(void) COUNT_PURE;
int mark5(void) COUNT_PURE;
int mark6(void) COUNT_PURE;
int mark7(void) COUNT_PURE;
int mark8(void) COUNT_PURE;
int mark9(void) COUNT_PURE;
int mark10(void) COUNT_PURE;
int mark11(void) COUNT_PURE;
int mark12(void) COUNT_PURE;
int mark13(void) COUNT_PURE;
int mark14(void) COUNT_PURE;
int mark15(void) COUNT_PURE;
int mark16(void) COUNT_PURE;
int mark17(void) COUNT_PURE;
int mark18(void) COUNT_PURE;
int mark19(void) COUNT_PURE;
int mark20(void) COUNT_PURE;
int mark21(void) COUNT_PURE;
int mark22(void) COUNT_PURE;
int mark23(void) COUNT_PURE;
int mark24(void) COUNT_PURE;
int mark25(void) COUNT_PURE;
int mark26(void) COUNT_PURE;
int mark27(void) COUNT_PURE;
int mark28(void) COUNT_PURE;
int mark29(void) COUNT_PURE;
int mark30(void) COUNT_PURE;
int mark31(void) COUNT_PURE;
int mark32(void) COUNT_PURE;
int mark33(void) COUNT_PURE;
int mark34(void) COUNT_PURE;
int mark35(void) COUNT_PURE;
int mark36(void) COUNT_PURE;
int mark37(void) COUNT_PURE;
int mark38(void) COUNT_PURE;
int mark39(void) COUNT_PURE;
int mark40(void) COUNT_PURE;
int mark41(void) COUNT_PURE;
int mark42(void) COUNT_PURE;
int mark43(void) COUNT_PURE;
int mark44(void) COUNT_PURE;
int mark45(void) COUNT_PURE;
int mark46(void) COUNT_PURE;
int mark47(void) COUNT_PURE;
int mark48(void) COUNT_PURE;
int mark49(void) COUNT_PURE;
int mark50(void) COUNT_PURE;
int mark51(void) COUNT_PURE;
int mark52(void) COUNT_PURE;
int mark53(void) COUNT_PURE;
int mark54(void) COUNT_PURE;
int mark55(void) COUNT_PURE;
int mark56(void) COUNT_PURE;
int mark57(void) COUNT_PURE;
int mark58(void) COUNT_PURE;
int mark59(void) COUNT_PURE;
int mark60(void) COUNT_PURE;
int mark61(void) COUNT_PURE;
int mark62(void) COUNT_PURE;
int mark63(void) COUNT_PURE;
#define MARK(n) \
  do { \
    __atomic_fetch_add(&count_marks[n], 1, __ATOMIC_RELAXED); \
    count_sink = mark##n(); \
  } while (0)
// After a call that may not return: in a block of its own.
#define AFTER(n) \
  do { \
    if (count_yes) \
      MARK(n); \
  } while (0)
#define NOINLINE __attribute__((noinline))
#ifdef __cplusplus
}
#endif
#endif
