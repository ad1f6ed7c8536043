; Both arms store: one store, of a selected value to a selected address.
; opt: -passes=pleach-if-conversion
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

define void @either(i1 %c, ptr %p, ptr %q, i64 %x, i64 %y) {
entry:
  br i1 %c, label %then, label %else, !unpredictable !0
then:
  store i64 %x, ptr %p
  br label %end
else:
  store i64 %y, ptr %q
  br label %end
end:
  ret void
}

!0 = !{i32 400}

; expected:
; define void @either(i1 %c, ptr %p, ptr %q, i64 %x, i64 %y) {
; entry:
;   %0 = select i1 %c, ptr %p, ptr %q, !unpredictable !0
;   %1 = select i1 %c, i64 %x, i64 %y, !unpredictable !0
;   store i64 %1, ptr %0, align 8
;   ret void
; }
;
; !0 = !{i32 400}
