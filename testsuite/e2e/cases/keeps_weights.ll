; Weights that came from where they are lose their marks when the function is simplified, also those of what was inlined
; into it. Those of other functions keep them.
; opt: -passes=cgscc(pleach-after-inlining)
target triple = "x86_64-unknown-linux-gnu"

define i32 @only_callee(i1 %rare) "pleach-keeps-weights" {
entry:
  br i1 %rare, label %yes, label %no, !prof !0, !pleach.sampled !1

yes:
  ret i32 1

no:
  ret i32 0
}

define i32 @other(i1 %rare) {
entry:
  br i1 %rare, label %yes, label %no, !prof !0, !pleach.sampled !1

yes:
  ret i32 1

no:
  ret i32 0
}

!0 = !{!"branch_weights", i32 1, i32 2000}
!1 = !{}

; expected:
; define i32 @only_callee(i1 %rare) #0 {
; entry:
;   br i1 %rare, label %yes, label %no, !prof !0
;
; yes:                                              ; preds = %entry
;   ret i32 1
;
; no:                                               ; preds = %entry
;   ret i32 0
; }
;
; define i32 @other(i1 %rare) {
; entry:
;   br i1 %rare, label %yes, label %no, !prof !0, !pleach.sampled !1
;
; yes:                                              ; preds = %entry
;   ret i32 1
;
; no:                                               ; preds = %entry
;   ret i32 0
; }
;
; attributes #0 = { "pleach-keeps-weights" }
;
; !0 = !{!"branch_weights", i32 1, i32 2000}
; !1 = !{}
