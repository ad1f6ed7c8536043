; A binary search is not peeled: the next load depends on a select by the last one. The largest element's loop may be, and
; so may that of the smallest element's index, and that of a pointer that a select moves on by a count; a search in a
; function without a profile is left alone. A select that the profile calls unpredictable stays one if the search is short;
; in a long one, code generation decides.
; opt: -passes=function(pleach-searches)
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

define ptr @search(ptr %start, i64 %n, i32 %key) !prof !0 {
entry:
  br label %loop

loop:
  %first = phi ptr [ %start, %entry ], [ %first.next, %loop ]
  %length = phi i64 [ %n, %entry ], [ %length.next, %loop ]
  %half = lshr i64 %length, 1
  %middle = getelementptr i32, ptr %first, i64 %half
  %value = load i32, ptr %middle
  %less = icmp slt i32 %value, %key
  %after = getelementptr i32, ptr %middle, i64 1
  %rest = sub i64 %length, %half
  %rest.less = sub i64 %rest, 1
  %first.next = select i1 %less, ptr %after, ptr %first
  %length.next = select i1 %less, i64 %rest.less, i64 %half
  %more = icmp sgt i64 %length.next, 0
  br i1 %more, label %loop, label %exit, !prof !1

exit:
  ret ptr %first.next
}

define ptr @unpredictable(ptr %start, i64 %n, i32 %key) !prof !0 {
entry:
  br label %loop

loop:
  %first = phi ptr [ %start, %entry ], [ %first.next, %loop ]
  %length = phi i64 [ %n, %entry ], [ %half, %loop ]
  %half = lshr i64 %length, 1
  %middle = getelementptr i32, ptr %first, i64 %half
  %value = load i32, ptr %middle
  %less = icmp slt i32 %value, %key
  %first.next = select i1 %less, ptr %middle, ptr %first, !unpredictable !2
  %more = icmp sgt i64 %half, 0
  br i1 %more, label %loop, label %exit, !prof !1

exit:
  ret ptr %first.next
}

define ptr @unpredictable_long(ptr %start, i64 %n, i32 %key) !prof !0 {
entry:
  br label %loop

loop:
  %first = phi ptr [ %start, %entry ], [ %first.next, %loop ]
  %length = phi i64 [ %n, %entry ], [ %half, %loop ]
  %half = lshr i64 %length, 1
  %middle = getelementptr i32, ptr %first, i64 %half
  %value = load i32, ptr %middle
  %less = icmp slt i32 %value, %key
  %first.next = select i1 %less, ptr %middle, ptr %first, !unpredictable !2
  %more = icmp sgt i64 %half, 0
  br i1 %more, label %loop, label %exit, !prof !3

exit:
  ret ptr %first.next
}

define i32 @largest(ptr %p, i64 %n) !prof !0 {
entry:
  br label %loop

loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %best = phi i32 [ 0, %entry ], [ %best.next, %loop ]
  %at = getelementptr i32, ptr %p, i64 %i
  %value = load i32, ptr %at
  %greater = icmp sgt i32 %value, %best
  %best.next = select i1 %greater, i32 %value, i32 %best
  %i.next = add i64 %i, 1
  %more = icmp slt i64 %i.next, %n
  br i1 %more, label %loop, label %exit, !prof !1

exit:
  ret i32 %best.next
}

define i32 @smallest(ptr %p, i64 %n) !prof !0 {
entry:
  br label %loop

loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %at = phi i32 [ 0, %entry ], [ %at.next, %loop ]
  %place = getelementptr {i32, i32}, ptr %p, i64 %i
  %value = load i32, ptr %place
  %index = sext i32 %at to i64
  %known.place = getelementptr {i32, i32}, ptr %p, i64 %index
  %known = load i32, ptr %known.place
  %less = icmp slt i32 %value, %known
  %narrow = trunc i64 %i to i32
  %at.next = select i1 %less, i32 %narrow, i32 %at
  %i.next = add i64 %i, 1
  %more = icmp slt i64 %i.next, %n
  br i1 %more, label %loop, label %exit, !prof !1

exit:
  ret i32 %at.next
}

define ptr @steps(ptr %p, i64 %n) !prof !0 {
entry:
  br label %loop

loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %at = phi ptr [ %p, %entry ], [ %at.next, %loop ]
  %odd = trunc i64 %i to i1
  %after = getelementptr i32, ptr %at, i64 1
  %at.next = select i1 %odd, ptr %after, ptr %at
  store i32 0, ptr %at
  %i.next = add i64 %i, 1
  %more = icmp slt i64 %i.next, %n
  br i1 %more, label %loop, label %exit, !prof !1

exit:
  ret ptr %at.next
}

define ptr @unknown(ptr %start, i64 %n, i32 %key) {
entry:
  br label %loop

loop:
  %first = phi ptr [ %start, %entry ], [ %first.next, %loop ]
  %length = phi i64 [ %n, %entry ], [ %length.next, %loop ]
  %half = lshr i64 %length, 1
  %middle = getelementptr i32, ptr %first, i64 %half
  %value = load i32, ptr %middle
  %less = icmp slt i32 %value, %key
  %after = getelementptr i32, ptr %middle, i64 1
  %first.next = select i1 %less, ptr %after, ptr %first
  %length.next = sub i64 %length, %half
  %more = icmp sgt i64 %length.next, 0
  br i1 %more, label %loop, label %exit

exit:
  ret ptr %first.next
}

!0 = !{!"function_entry_count", i64 1000}
!1 = !{!"branch_weights", i32 5000, i32 1000}
!2 = !{i32 450}
!3 = !{!"branch_weights", i32 20000, i32 1000}

; expected:
; define ptr @search(ptr %start, i64 %n, i32 %key) !prof !0 {
; entry:
;   br label %loop
;
; loop:                                             ; preds = %loop, %entry
;   %first = phi ptr [ %start, %entry ], [ %first.next, %loop ]
;   %length = phi i64 [ %n, %entry ], [ %length.next, %loop ]
;   %half = lshr i64 %length, 1
;   %middle = getelementptr i32, ptr %first, i64 %half
;   %value = load i32, ptr %middle, align 4
;   %less = icmp slt i32 %value, %key
;   %after = getelementptr i32, ptr %middle, i64 1
;   %rest = sub i64 %length, %half
;   %rest.less = sub i64 %rest, 1
;   %first.next = select i1 %less, ptr %after, ptr %first
;   %length.next = select i1 %less, i64 %rest.less, i64 %half
;   %more = icmp sgt i64 %length.next, 0
;   br i1 %more, label %loop, label %exit, !prof !1, !llvm.loop !2
;
; exit:                                             ; preds = %loop
;   ret ptr %first.next
; }
;
; define ptr @unpredictable(ptr %start, i64 %n, i32 %key) !prof !0 {
; entry:
;   br label %loop
;
; loop:                                             ; preds = %loop, %entry
;   %first = phi ptr [ %start, %entry ], [ %first.next, %loop ]
;   %length = phi i64 [ %n, %entry ], [ %half, %loop ]
;   %half = lshr i64 %length, 1
;   %middle = getelementptr i32, ptr %first, i64 %half
;   %value = load i32, ptr %middle, align 4
;   %less = icmp slt i32 %value, %key
;   %first.next = select i1 %less, ptr %middle, ptr %first, !unpredictable !4
;   %more = icmp sgt i64 %half, 0
;   br i1 %more, label %loop, label %exit, !prof !1, !llvm.loop !5
;
; exit:                                             ; preds = %loop
;   ret ptr %first.next
; }
;
; define ptr @unpredictable_long(ptr %start, i64 %n, i32 %key) !prof !0 {
; entry:
;   br label %loop
;
; loop:                                             ; preds = %loop, %entry
;   %first = phi ptr [ %start, %entry ], [ %first.next, %loop ]
;   %length = phi i64 [ %n, %entry ], [ %half, %loop ]
;   %half = lshr i64 %length, 1
;   %middle = getelementptr i32, ptr %first, i64 %half
;   %value = load i32, ptr %middle, align 4
;   %less = icmp slt i32 %value, %key
;   %first.next = select i1 %less, ptr %middle, ptr %first
;   %more = icmp sgt i64 %half, 0
;   br i1 %more, label %loop, label %exit, !prof !6, !llvm.loop !7
;
; exit:                                             ; preds = %loop
;   ret ptr %first.next
; }
;
; define i32 @largest(ptr %p, i64 %n) !prof !0 {
; entry:
;   br label %loop
;
; loop:                                             ; preds = %loop, %entry
;   %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
;   %best = phi i32 [ 0, %entry ], [ %best.next, %loop ]
;   %at = getelementptr i32, ptr %p, i64 %i
;   %value = load i32, ptr %at, align 4
;   %greater = icmp sgt i32 %value, %best
;   %best.next = select i1 %greater, i32 %value, i32 %best
;   %i.next = add i64 %i, 1
;   %more = icmp slt i64 %i.next, %n
;   br i1 %more, label %loop, label %exit, !prof !1
;
; exit:                                             ; preds = %loop
;   ret i32 %best.next
; }
;
; define i32 @smallest(ptr %p, i64 %n) !prof !0 {
; entry:
;   br label %loop
;
; loop:                                             ; preds = %loop, %entry
;   %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
;   %at = phi i32 [ 0, %entry ], [ %at.next, %loop ]
;   %place = getelementptr { i32, i32 }, ptr %p, i64 %i
;   %value = load i32, ptr %place, align 4
;   %index = sext i32 %at to i64
;   %known.place = getelementptr { i32, i32 }, ptr %p, i64 %index
;   %known = load i32, ptr %known.place, align 4
;   %less = icmp slt i32 %value, %known
;   %narrow = trunc i64 %i to i32
;   %at.next = select i1 %less, i32 %narrow, i32 %at
;   %i.next = add i64 %i, 1
;   %more = icmp slt i64 %i.next, %n
;   br i1 %more, label %loop, label %exit, !prof !1
;
; exit:                                             ; preds = %loop
;   ret i32 %at.next
; }
;
; define ptr @steps(ptr %p, i64 %n) !prof !0 {
; entry:
;   br label %loop
;
; loop:                                             ; preds = %loop, %entry
;   %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
;   %at = phi ptr [ %p, %entry ], [ %at.next, %loop ]
;   %odd = trunc i64 %i to i1
;   %after = getelementptr i32, ptr %at, i64 1
;   %at.next = select i1 %odd, ptr %after, ptr %at
;   store i32 0, ptr %at, align 4
;   %i.next = add i64 %i, 1
;   %more = icmp slt i64 %i.next, %n
;   br i1 %more, label %loop, label %exit, !prof !1
;
; exit:                                             ; preds = %loop
;   ret ptr %at.next
; }
;
; define ptr @unknown(ptr %start, i64 %n, i32 %key) {
; entry:
;   br label %loop
;
; loop:                                             ; preds = %loop, %entry
;   %first = phi ptr [ %start, %entry ], [ %first.next, %loop ]
;   %length = phi i64 [ %n, %entry ], [ %length.next, %loop ]
;   %half = lshr i64 %length, 1
;   %middle = getelementptr i32, ptr %first, i64 %half
;   %value = load i32, ptr %middle, align 4
;   %less = icmp slt i32 %value, %key
;   %after = getelementptr i32, ptr %middle, i64 1
;   %first.next = select i1 %less, ptr %after, ptr %first
;   %length.next = sub i64 %length, %half
;   %more = icmp sgt i64 %length.next, 0
;   br i1 %more, label %loop, label %exit
;
; exit:                                             ; preds = %loop
;   ret ptr %first.next
; }
;
; !0 = !{!"function_entry_count", i64 1000}
; !1 = !{!"branch_weights", i32 5000, i32 1000}
; !2 = distinct !{!2, !3}
; !3 = !{!"llvm.loop.peeled.count", i32 7}
; !4 = !{i32 450}
; !5 = distinct !{!5, !3}
; !6 = !{!"branch_weights", i32 20000, i32 1000}
; !7 = distinct !{!7, !3}
