; Functions that call each other often are neighbours; those that never ran come last.
; opt: -passes=pleach-function-order
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

define void @never() {
  ret void
}

define void @caller() !prof !0 {
  call void @callee()
  ret void
}

define void @other() !prof !1 {
  ret void
}

define void @callee() !prof !0 {
  ret void
}

!llvm.module.flags = !{!2}
!0 = !{!"function_entry_count", i64 1000}
!1 = !{!"function_entry_count", i64 10}
!2 = !{i32 5, !"CG Profile", !3}
!3 = distinct !{!4}
!4 = !{ptr @caller, ptr @callee, i64 1000}

; expected:
; define void @caller() !prof !3 {
;   call void @callee()
;   ret void
; }
;
; define void @callee() !prof !3 {
;   ret void
; }
;
; define void @other() !prof !4 {
;   ret void
; }
;
; define void @never() {
;   ret void
; }
;
; !llvm.module.flags = !{!0}
;
; !0 = !{i32 5, !"CG Profile", !1}
; !1 = distinct !{!2}
; !2 = !{ptr @caller, ptr @callee, i64 1000}
; !3 = !{!"function_entry_count", i64 1000}
; !4 = !{!"function_entry_count", i64 10}
