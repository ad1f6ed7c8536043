; Nothing happens where an arm calls, and where a branch is not known to be unpredictable.
; opt: -passes=pleach-if-conversion
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

declare void @work()

define void @calls(i1 %c, ptr %p) {
entry:
  br i1 %c, label %then, label %end, !unpredictable !0
then:
  store i64 1, ptr %p
  call void @work()
  br label %end
end:
  ret void
}

define void @predictable(i1 %c, ptr %p) {
entry:
  br i1 %c, label %then, label %end
then:
  store i64 1, ptr %p
  br label %end
end:
  ret void
}

!0 = !{i32 400}

; expected:
; declare void @work()
;
; define void @calls(i1 %c, ptr %p) {
; entry:
;   br i1 %c, label %then, label %end, !unpredictable !0
;
; then:                                             ; preds = %entry
;   store i64 1, ptr %p, align 8
;   call void @work()
;   br label %end
;
; end:                                              ; preds = %then, %entry
;   ret void
; }
;
; define void @predictable(i1 %c, ptr %p) {
; entry:
;   br i1 %c, label %then, label %end
;
; then:                                             ; preds = %entry
;   store i64 1, ptr %p, align 8
;   br label %end
;
; end:                                              ; preds = %then, %entry
;   ret void
; }
;
; !0 = !{i32 400}
