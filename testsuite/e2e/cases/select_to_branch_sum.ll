; A generator of random numbers: what the select adds to takes as long as its condition. The select stays.
; opt: -passes=pleach-select-to-branch
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

define i64 @numbers(i64 %seed, i64 %count) !prof !0 {
entry:
  br label %loop
loop:
  %number = phi i64 [ %seed, %entry ], [ %next, %loop ]
  %i = phi i64 [ 0, %entry ], [ %after, %loop ]
  %product = mul i64 %number, 6364136223846793005
  %product2 = mul i64 %product, 6364136223846793005
  %product3 = mul i64 %product2, 6364136223846793005
  %product4 = mul i64 %product3, 6364136223846793005
  %bit = and i64 %product4, 4096
  %set = icmp ne i64 %bit, 0
  %added = select i1 %set, i64 %i, i64 0
  %next = add i64 %product4, %added
  %after = add i64 %i, 1
  %done = icmp eq i64 %after, %count
  br i1 %done, label %end, label %loop
end:
  ret i64 %next
}

!0 = !{!"function_entry_count", i64 1000}

; expected:
; define i64 @numbers(i64 %seed, i64 %count) !prof !0 {
; entry:
;   br label %loop
;
; loop:                                             ; preds = %loop, %entry
;   %number = phi i64 [ %seed, %entry ], [ %next, %loop ]
;   %i = phi i64 [ 0, %entry ], [ %after, %loop ]
;   %product = mul i64 %number, 6364136223846793005
;   %product2 = mul i64 %product, 6364136223846793005
;   %product3 = mul i64 %product2, 6364136223846793005
;   %product4 = mul i64 %product3, 6364136223846793005
;   %bit = and i64 %product4, 4096
;   %set = icmp ne i64 %bit, 0
;   %added = select i1 %set, i64 %i, i64 0
;   %next = add i64 %product4, %added
;   %after = add i64 %i, 1
;   %done = icmp eq i64 %after, %count
;   br i1 %done, label %end, label %loop
;
; end:                                              ; preds = %loop
;   ret i64 %next
; }
;
; !0 = !{!"function_entry_count", i64 1000}
