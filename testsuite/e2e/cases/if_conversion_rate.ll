; The profile's rate of mispredictions decides: the same arm is converted at 40 %, and not at 1 %.
; opt: -passes=pleach-if-conversion
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

define void @often(i1 %c, ptr %p, i64 %x) {
entry:
  br i1 %c, label %then, label %end, !unpredictable !0
then:
  store i64 %x, ptr %p
  %a = getelementptr i64, ptr %p, i64 1
  store i64 %x, ptr %a
  br label %end
end:
  ret void
}

define void @seldom(i1 %c, ptr %p, i64 %x) {
entry:
  br i1 %c, label %then, label %end, !unpredictable !1
then:
  store i64 %x, ptr %p
  %a = getelementptr i64, ptr %p, i64 1
  store i64 %x, ptr %a
  br label %end
end:
  ret void
}

!0 = !{i32 400}
!1 = !{i32 10}

; expected:
; define void @often(i1 %c, ptr %p, i64 %x) {
; entry:
;   %pleach.sink = alloca i128, align 16, !pleach.sink !0
;   %0 = select i1 %c, ptr %p, ptr %pleach.sink, !unpredictable !1
;   store i64 %x, ptr %0, align 8
;   %a = getelementptr i64, ptr %p, i64 1
;   %1 = select i1 %c, ptr %a, ptr %pleach.sink, !unpredictable !1
;   store i64 %x, ptr %1, align 8
;   ret void
; }
;
; define void @seldom(i1 %c, ptr %p, i64 %x) {
; entry:
;   br i1 %c, label %then, label %end, !unpredictable !2
;
; then:                                             ; preds = %entry
;   store i64 %x, ptr %p, align 8
;   %a = getelementptr i64, ptr %p, i64 1
;   store i64 %x, ptr %a, align 8
;   br label %end
;
; end:                                              ; preds = %then, %entry
;   ret void
; }
;
; !0 = !{}
; !1 = !{i32 400}
; !2 = !{i32 10}
