; The weights of the profile are forgotten in a function without samples, into which they came with inlined code. Those
; of the source stay or come back, and so do all weights of a function with samples.
; opt: -passes=pleach-inherited-weights
target triple = "x86_64-unknown-linux-gnu"

define i32 @never_sampled(i32 %kind, i1 %rare) "pleach-unsampled" {
entry:
  br i1 %rare, label %exit, label %check, !prof !0

check:
  %is_text = icmp eq i32 %kind, 6
  br i1 %is_text, label %text, label %exit, !prof !1, !pleach.sampled !2

text:
  br i1 %rare, label %exit, label %more, !prof !1, !pleach.sampled !3

more:
  br label %exit

exit:
  %result = phi i32 [ 0, %entry ], [ 1, %check ], [ 2, %text ], [ 3, %more ]
  ret i32 %result
}

define i32 @sampled(i32 %kind) {
entry:
  %is_text = icmp eq i32 %kind, 6
  br i1 %is_text, label %text, label %exit, !prof !1, !pleach.sampled !2

text:
  br label %exit

exit:
  %result = phi i32 [ 1, %entry ], [ 2, %text ]
  ret i32 %result
}

!0 = !{!"branch_weights", !"expected", i32 1, i32 2000}
!1 = !{!"branch_weights", i32 494000, i32 171000}
!2 = !{}
!3 = !{!0}

; expected:
; define i32 @never_sampled(i32 %kind, i1 %rare) {
; entry:
;   br i1 %rare, label %exit, label %check, !prof !0
;
; check:                                            ; preds = %entry
;   %is_text = icmp eq i32 %kind, 6
;   br i1 %is_text, label %text, label %exit
;
; text:                                             ; preds = %check
;   br i1 %rare, label %exit, label %more, !prof !0
;
; more:                                             ; preds = %text
;   br label %exit
;
; exit:                                             ; preds = %more, %text, %check, %entry
;   %result = phi i32 [ 0, %entry ], [ 1, %check ], [ 2, %text ], [ 3, %more ]
;   ret i32 %result
; }
;
; define i32 @sampled(i32 %kind) {
; entry:
;   %is_text = icmp eq i32 %kind, 6
;   br i1 %is_text, label %text, label %exit, !prof !1
;
; text:                                             ; preds = %entry
;   br label %exit
;
; exit:                                             ; preds = %text, %entry
;   %result = phi i32 [ 1, %entry ], [ 2, %text ]
;   ret i32 %result
; }
;
; !0 = !{!"branch_weights", !"expected", i32 1, i32 2000}
; !1 = !{!"branch_weights", i32 494000, i32 171000}
