; A division by a variable is compared with its frequent divisor; quotient and remainder of the same operands are computed
; together. A divisor of more bits than the type has is cut off. Functions compiled for size, constants and metadata of
; another shape are left alone.
; opt: -passes=function(pleach-divisors)
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

define i64 @remainder(i64 %a, i64 %b) {
  %r = urem i64 %a, %b, !pleach.divisor !0
  ret i64 %r
}

define i32 @both(i32 %a, i32 %b) {
  %q = sdiv i32 %a, %b, !pleach.divisor !1
  %sum = add i32 %q, 5
  %r = srem i32 %a, %b, !pleach.divisor !1
  %other = urem i32 %a, %b
  %result = add i32 %sum, %r
  %all = add i32 %result, %other
  ret i32 %all
}

define i64 @large_counts(i64 %a, i64 %b) {
  %q = udiv i64 %a, %b, !pleach.divisor !2
  ret i64 %q
}

define i64 @small(i64 %a, i64 %b) optsize {
  %q = udiv i64 %a, %b, !pleach.divisor !0
  ret i64 %q
}

define i64 @constant(i64 %a) {
  %q = udiv i64 %a, 7, !pleach.divisor !0
  ret i64 %q
}

define i64 @malformed(i64 %a, i64 %b) {
  %q = udiv i64 %a, %b, !pleach.divisor !3
  ret i64 %q
}

!0 = !{i64 99991, i64 900, i64 1000}
!1 = !{i64 18446744073709551556, i64 900, i64 1000}
!2 = !{i64 64, i64 900000000000, i64 1000000000000}
!3 = !{i64 99991, i64 900}

; expected:
; define i64 @remainder(i64 %a, i64 %b) {
;   %1 = icmp eq i64 %b, 99991
;   br i1 %1, label %2, label %4, !prof !0
;
; 2:                                                ; preds = %0
;   %3 = urem i64 %a, 99991
;   br label %6
;
; 4:                                                ; preds = %0
;   %5 = urem i64 %a, %b
;   br label %6
;
; 6:                                                ; preds = %4, %2
;   %r = phi i64 [ %3, %2 ], [ %5, %4 ]
;   ret i64 %r
; }
;
; define i32 @both(i32 %a, i32 %b) {
;   %1 = icmp eq i32 %b, -60
;   br i1 %1, label %2, label %5, !prof !0
;
; 2:                                                ; preds = %0
;   %3 = sdiv i32 %a, -60
;   %4 = srem i32 %a, -60
;   br label %8
;
; 5:                                                ; preds = %0
;   %6 = sdiv i32 %a, %b
;   %7 = srem i32 %a, %b
;   br label %8
;
; 8:                                                ; preds = %5, %2
;   %q = phi i32 [ %3, %2 ], [ %6, %5 ]
;   %r = phi i32 [ %4, %2 ], [ %7, %5 ]
;   %sum = add i32 %q, 5
;   %other = urem i32 %a, %b
;   %result = add i32 %sum, %r
;   %all = add i32 %result, %other
;   ret i32 %all
; }
;
; define i64 @large_counts(i64 %a, i64 %b) {
;   %1 = icmp eq i64 %b, 64
;   br i1 %1, label %2, label %4, !prof !1
;
; 2:                                                ; preds = %0
;   %3 = udiv i64 %a, 64
;   br label %6
;
; 4:                                                ; preds = %0
;   %5 = udiv i64 %a, %b
;   br label %6
;
; 6:                                                ; preds = %4, %2
;   %q = phi i64 [ %3, %2 ], [ %5, %4 ]
;   ret i64 %q
; }
;
; ; Function Attrs: optsize
; define i64 @small(i64 %a, i64 %b) #0 {
;   %q = udiv i64 %a, %b, !pleach.divisor !2
;   ret i64 %q
; }
;
; define i64 @constant(i64 %a) {
;   %q = udiv i64 %a, 7, !pleach.divisor !2
;   ret i64 %q
; }
;
; define i64 @malformed(i64 %a, i64 %b) {
;   %q = udiv i64 %a, %b, !pleach.divisor !3
;   ret i64 %q
; }
;
; attributes #0 = { optsize }
;
; !0 = !{!"branch_weights", i32 900, i32 100}
; !1 = !{!"branch_weights", i32 -779342296, i32 390625000}
; !2 = !{i64 99991, i64 900, i64 1000}
; !3 = !{i64 99991, i64 900}
