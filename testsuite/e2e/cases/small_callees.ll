; Small callees are inlined before the profile is revealed to the inliner. The only call of a local function is left for
; the inliner that knows the profile, as is a large callee; hot functions get their hint afterwards.
; opt: -passes=pleach-small-callees
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

declare void @effect(i32)

define i32 @small(i32 %x) {
  %y = mul i32 %x, 3
  ret i32 %y
}

define internal i32 @once(i32 %x) {
  %y = add i32 %x, 7
  ret i32 %y
}

define void @large(i32 %x) #0 {
  call void @effect(i32 %x)
  call void @effect(i32 %x)
  call void @effect(i32 %x)
  call void @effect(i32 %x)
  call void @effect(i32 %x)
  call void @effect(i32 %x)
  call void @effect(i32 %x)
  call void @effect(i32 %x)
  call void @effect(i32 %x)
  call void @effect(i32 %x)
  ret void
}

define i32 @caller(i32 %x) {
  %a = call i32 @small(i32 %x)
  %b = call i32 @once(i32 %a)
  call void @large(i32 %b)
  ret i32 %b
}

attributes #0 = { "pleach-hot" }

; expected:
; declare void @effect(i32)
;
; define i32 @small(i32 %x) {
;   %y = mul i32 %x, 3
;   ret i32 %y
; }
;
; define internal i32 @once(i32 %x) {
;   %y = add i32 %x, 7
;   ret i32 %y
; }
;
; ; Function Attrs: inlinehint
; define void @large(i32 %x) #0 {
;   call void @effect(i32 %x)
;   call void @effect(i32 %x)
;   call void @effect(i32 %x)
;   call void @effect(i32 %x)
;   call void @effect(i32 %x)
;   call void @effect(i32 %x)
;   call void @effect(i32 %x)
;   call void @effect(i32 %x)
;   call void @effect(i32 %x)
;   call void @effect(i32 %x)
;   ret void
; }
;
; define i32 @caller(i32 %x) {
;   %y.i = mul i32 %x, 3
;   %b = call i32 @once(i32 %y.i)
;   call void @large(i32 %b)
;   ret i32 %b
; }
;
; attributes #0 = { inlinehint }
