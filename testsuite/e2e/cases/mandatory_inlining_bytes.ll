; What must be inlined and reads bytes one by one reads them by one load before it is inlined: two such reads that
; overlap would share single bytes afterwards.
; opt: -passes=pleach-mandatory-inlining
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

define i32 @read(ptr %p) alwaysinline {
  %a = load i8, ptr %p
  %p1 = getelementptr inbounds i8, ptr %p, i64 1
  %b = load i8, ptr %p1
  %p2 = getelementptr inbounds i8, ptr %p, i64 2
  %c = load i8, ptr %p2
  %p3 = getelementptr inbounds i8, ptr %p, i64 3
  %d = load i8, ptr %p3
  %a4 = zext i8 %a to i32
  %b4 = zext i8 %b to i32
  %c4 = zext i8 %c to i32
  %d4 = zext i8 %d to i32
  %bs = shl i32 %b4, 8
  %cs = shl i32 %c4, 16
  %ds = shl i32 %d4, 24
  %ab = or i32 %a4, %bs
  %abc = or i32 %ab, %cs
  %abcd = or i32 %abc, %ds
  ret i32 %abcd
}

define i32 @overlap(ptr %p) {
  %x = call i32 @read(ptr %p) alwaysinline
  %p1 = getelementptr inbounds i8, ptr %p, i64 1
  %y = call i32 @read(ptr %p1) alwaysinline
  %z = xor i32 %x, %y
  ret i32 %z
}

; expected:
; ; Function Attrs: alwaysinline
; define i32 @read(ptr %p) #0 {
;   %a = load i32, ptr %p, align 1
;   ret i32 %a
; }
;
; define i32 @overlap(ptr %p) {
;   %a.i1 = load i32, ptr %p, align 1
;   %p1 = getelementptr inbounds i8, ptr %p, i64 1
;   %a.i = load i32, ptr %p1, align 1
;   %z = xor i32 %a.i1, %a.i
;   ret i32 %z
; }
;
; attributes #0 = { alwaysinline }
