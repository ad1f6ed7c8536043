; An unpredictable branch around a store is if-converted: the load reads zeros, and the store goes to a sink, where the branch skipped them.
; opt: -passes=pleach-if-conversion
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

define void @add_if(i1 %c, ptr %p, i64 %x) {
entry:
  br i1 %c, label %then, label %end, !unpredictable !0
then:
  %old = load i64, ptr %p
  %new = add i64 %old, %x
  store i64 %new, ptr %p
  br label %end
end:
  ret void
}

!0 = !{i32 400}

; expected:
; @pleach.zeros = private unnamed_addr constant [16 x i8] zeroinitializer, align 16
;
; define void @add_if(i1 %c, ptr %p, i64 %x) {
; entry:
;   %pleach.sink = alloca i128, align 16, !pleach.sink !0
;   %0 = select i1 %c, ptr %p, ptr @pleach.zeros, !unpredictable !1
;   %old = load i64, ptr %0, align 8
;   %new = add i64 %old, %x
;   %1 = select i1 %c, ptr %p, ptr %pleach.sink, !unpredictable !1
;   store i64 %new, ptr %1, align 8
;   ret void
; }
;
; !0 = !{}
; !1 = !{i32 400}
