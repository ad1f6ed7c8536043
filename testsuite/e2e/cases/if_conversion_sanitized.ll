; Nothing is executed speculatively where a sanitizer would report it.
; opt: -passes=pleach-if-conversion
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

define void @sanitized(i1 %c, ptr %p, i64 %x) sanitize_address {
entry:
  br i1 %c, label %then, label %end, !unpredictable !0
then:
  store i64 %x, ptr %p
  br label %end
end:
  ret void
}

!0 = !{i32 400}

; expected:
; ; Function Attrs: sanitize_address
; define void @sanitized(i1 %c, ptr %p, i64 %x) #0 {
; entry:
;   br i1 %c, label %then, label %end, !unpredictable !0
;
; then:                                             ; preds = %entry
;   store i64 %x, ptr %p, align 8
;   br label %end
;
; end:                                              ; preds = %then, %entry
;   ret void
; }
;
; attributes #0 = { sanitize_address }
;
; !0 = !{i32 400}
