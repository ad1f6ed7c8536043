; A function is simplified before small callees are inlined in the order of the host: comparisons of the difference become
; comparisons of its operands while they still decide branches. As selects, they would hide that.
; opt: -passes=pleach-small-callees
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

define i32 @sign_of_difference(i64 %a, i64 %b) {
  %d = sub nsw i64 %a, %b
  %positive = icmp sgt i64 %d, 0
  br i1 %positive, label %end, label %else

else:
  %negative = icmp slt i64 %d, 0
  %s = select i1 %negative, i32 -1, i32 0
  br label %end

end:
  %sign = phi i32 [ 1, %0 ], [ %s, %else ]
  %three = mul nsw i32 %sign, 3
  ret i32 %three
}

; expected:
; define range(i32 -3, 4) i32 @sign_of_difference(i64 %a, i64 %b) {
; end:
;   %positive = icmp sgt i64 %a, %b
;   %negative.not.not = icmp eq i64 %a, %b
;   %0 = select i1 %negative.not.not, i32 0, i32 -3
;   %sign = select i1 %positive, i32 3, i32 %0
;   ret i32 %sign
; }
