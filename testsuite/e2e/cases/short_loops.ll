; A loop that runs twice by the profile stays scalar where stores cannot be masked: LLVM would predicate every store. One
; that runs twelve times counts as one of sixteen, which LLVM vectorises as without a profile, or as one of many if its
; elements are bytes, of which a register holds more than twelve. One that runs a hundred times is left to LLVM, and so is
; the same short loop where the target has masked stores, and one that the user wants vectorised.
; opt: -passes=function(pleach-short-loops)
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

define void @short(ptr %p, i32 %n) !prof !0 {
entry:
  br label %loop

loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %a = getelementptr i32, ptr %p, i32 %i
  store i32 0, ptr %a
  %next = add i32 %i, 1
  %more = icmp ult i32 %next, %n
  br i1 %more, label %loop, label %exit, !prof !1

exit:
  ret void
}

define void @medium(ptr %p, i32 %n) !prof !0 {
entry:
  br label %loop

loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %a = getelementptr i32, ptr %p, i32 %i
  store i32 0, ptr %a
  %next = add i32 %i, 1
  %more = icmp ult i32 %next, %n
  br i1 %more, label %loop, label %exit, !prof !9

exit:
  ret void
}

define void @bytes(ptr %p, i32 %n) !prof !0 {
entry:
  br label %loop

loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %a = getelementptr i8, ptr %p, i32 %i
  store i8 0, ptr %a
  %next = add i32 %i, 1
  %more = icmp ult i32 %next, %n
  br i1 %more, label %loop, label %exit, !prof !9

exit:
  ret void
}

define void @long(ptr %p, i32 %n) !prof !0 {
entry:
  br label %loop

loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %a = getelementptr i32, ptr %p, i32 %i
  store i32 0, ptr %a
  %next = add i32 %i, 1
  %more = icmp ult i32 %next, %n
  br i1 %more, label %loop, label %exit, !prof !2

exit:
  ret void
}

define void @masked(ptr %p, i32 %n) "target-features"="+avx2" !prof !0 {
entry:
  br label %loop

loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %a = getelementptr i32, ptr %p, i32 %i
  store i32 0, ptr %a
  %next = add i32 %i, 1
  %more = icmp ult i32 %next, %n
  br i1 %more, label %loop, label %exit, !prof !1

exit:
  ret void
}

define void @wanted(ptr %p, i32 %n) !prof !0 {
entry:
  br label %loop

loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %a = getelementptr i32, ptr %p, i32 %i
  store i32 0, ptr %a
  %next = add i32 %i, 1
  %more = icmp ult i32 %next, %n
  br i1 %more, label %loop, label %exit, !prof !1, !llvm.loop !3

exit:
  ret void
}

!0 = !{!"function_entry_count", i64 1000}
!1 = !{!"branch_weights", i32 1000, i32 1000}
!2 = !{!"branch_weights", i32 99000, i32 1000}
!3 = distinct !{!3, !4}
!4 = !{!"llvm.loop.vectorize.width", i32 4}
!9 = !{!"branch_weights", i32 11000, i32 1000}

; expected:
; define void @short(ptr %p, i32 %n) !prof !0 {
; entry:
;   br label %loop
;
; loop:                                             ; preds = %loop, %entry
;   %i = phi i32 [ 0, %entry ], [ %next, %loop ]
;   %a = getelementptr i32, ptr %p, i32 %i
;   store i32 0, ptr %a, align 4
;   %next = add i32 %i, 1
;   %more = icmp ult i32 %next, %n
;   br i1 %more, label %loop, label %exit, !prof !1, !llvm.loop !2
;
; exit:                                             ; preds = %loop
;   ret void
; }
;
; define void @medium(ptr %p, i32 %n) !prof !0 {
; entry:
;   br label %loop
;
; loop:                                             ; preds = %loop, %entry
;   %i = phi i32 [ 0, %entry ], [ %next, %loop ]
;   %a = getelementptr i32, ptr %p, i32 %i
;   store i32 0, ptr %a, align 4
;   %next = add i32 %i, 1
;   %more = icmp ult i32 %next, %n
;   br i1 %more, label %loop, label %exit, !prof !4, !llvm.loop !5
;
; exit:                                             ; preds = %loop
;   ret void
; }
;
; define void @bytes(ptr %p, i32 %n) !prof !0 {
; entry:
;   br label %loop
;
; loop:                                             ; preds = %loop, %entry
;   %i = phi i32 [ 0, %entry ], [ %next, %loop ]
;   %a = getelementptr i8, ptr %p, i32 %i
;   store i8 0, ptr %a, align 1
;   %next = add i32 %i, 1
;   %more = icmp ult i32 %next, %n
;   br i1 %more, label %loop, label %exit, !prof !4, !llvm.loop !7
;
; exit:                                             ; preds = %loop
;   ret void
; }
;
; define void @long(ptr %p, i32 %n) !prof !0 {
; entry:
;   br label %loop
;
; loop:                                             ; preds = %loop, %entry
;   %i = phi i32 [ 0, %entry ], [ %next, %loop ]
;   %a = getelementptr i32, ptr %p, i32 %i
;   store i32 0, ptr %a, align 4
;   %next = add i32 %i, 1
;   %more = icmp ult i32 %next, %n
;   br i1 %more, label %loop, label %exit, !prof !9
;
; exit:                                             ; preds = %loop
;   ret void
; }
;
; define void @masked(ptr %p, i32 %n) #0 !prof !0 {
; entry:
;   br label %loop
;
; loop:                                             ; preds = %loop, %entry
;   %i = phi i32 [ 0, %entry ], [ %next, %loop ]
;   %a = getelementptr i32, ptr %p, i32 %i
;   store i32 0, ptr %a, align 4
;   %next = add i32 %i, 1
;   %more = icmp ult i32 %next, %n
;   br i1 %more, label %loop, label %exit, !prof !1
;
; exit:                                             ; preds = %loop
;   ret void
; }
;
; define void @wanted(ptr %p, i32 %n) !prof !0 {
; entry:
;   br label %loop
;
; loop:                                             ; preds = %loop, %entry
;   %i = phi i32 [ 0, %entry ], [ %next, %loop ]
;   %a = getelementptr i32, ptr %p, i32 %i
;   store i32 0, ptr %a, align 4
;   %next = add i32 %i, 1
;   %more = icmp ult i32 %next, %n
;   br i1 %more, label %loop, label %exit, !prof !1, !llvm.loop !10
;
; exit:                                             ; preds = %loop
;   ret void
; }
;
; attributes #0 = { "target-features"="+avx2" }
;
; !0 = !{!"function_entry_count", i64 1000}
; !1 = !{!"branch_weights", i32 1000, i32 1000}
; !2 = distinct !{!2, !3}
; !3 = !{!"llvm.loop.vectorize.enable", i32 0}
; !4 = !{!"branch_weights", i32 11000, i32 1000}
; !5 = distinct !{!5, !6}
; !6 = !{!"llvm.loop.estimated_trip_count", i32 16}
; !7 = distinct !{!7, !8}
; !8 = !{!"llvm.loop.estimated_trip_count", i32 1024}
; !9 = !{!"branch_weights", i32 99000, i32 1000}
; !10 = distinct !{!10, !11}
; !11 = !{!"llvm.loop.vectorize.width", i32 4}
