; Neither arm is negative, which the select that they become does not show.
; opt: -passes=pleach-small-callees
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

define i32 @third(ptr %p, i32 range(i32 0, -2147483648) %m) {
entry:
  %loaded = load i32, ptr %p
  %x = xor i32 %loaded, %m
  %negative = icmp slt i32 %x, 0
  br i1 %negative, label %negate, label %end
negate:
  %magnitude = sub nsw i32 0, %x
  br label %end
end:
  %value = phi i32 [ %magnitude, %negate ], [ %x, %entry ]
  %third = sdiv i32 %value, 3
  ret i32 %third
}

; expected:
; define range(i32 0, 715827883) i32 @third(ptr %p, i32 range(i32 0, -2147483648) %m) {
; entry:
;   %loaded = load i32, ptr %p, align 4
;   %x = xor i32 %loaded, %m
;   %negative = icmp slt i32 %loaded, 0
;   %magnitude = sub nsw i32 0, %x
;   %spec.select = select i1 %negative, i32 %magnitude, i32 %x
;   %third = udiv i32 %spec.select, 3
;   ret i32 %third
; }
