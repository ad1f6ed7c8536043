; From few bursts it is not known how often loops run.
; opt: -passes=function(pleach-short-loops)
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

define void @short(ptr %p, i32 %n) !prof !1 {
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

!llvm.module.flags = !{!0}
!0 = !{i32 7, !"pleach.few-bursts", i32 1}
!1 = !{!"function_entry_count", i64 1000}
!2 = !{!"branch_weights", i32 1000, i32 1000}

; expected:
; define void @short(ptr %p, i32 %n) !prof !1 {
; entry:
;   br label %loop
;
; loop:                                             ; preds = %loop, %entry
;   %i = phi i32 [ 0, %entry ], [ %next, %loop ]
;   %a = getelementptr i32, ptr %p, i32 %i
;   store i32 0, ptr %a, align 4
;   %next = add i32 %i, 1
;   %more = icmp ult i32 %next, %n
;   br i1 %more, label %loop, label %exit, !prof !2, !llvm.loop !3
;
; exit:                                             ; preds = %loop
;   ret void
; }
;
; !llvm.module.flags = !{!0}
;
; !0 = !{i32 7, !"pleach.few-bursts", i32 1}
; !1 = !{!"function_entry_count", i64 1000}
; !2 = !{!"branch_weights", i32 1000, i32 1000}
; !3 = distinct !{!3, !4}
; !4 = !{!"llvm.loop.estimated_trip_count", i32 0}
