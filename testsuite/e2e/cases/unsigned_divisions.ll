; A division becomes unsigned where the loop's value is never negative: a heap's hole moves up while it is above the root.
; It stays signed where the loop is entered with any value, where the loop goes on with negative values, and where the
; divisor is negative.
; opt: -passes=function(pleach-unsigned-divisions)
target triple = "x86_64-unknown-linux-gnu"

define i64 @heap(ptr %heap, i64 %length, i32 %new) {
entry:
  %is.heap = icmp sgt i64 %length, 1
  br i1 %is.heap, label %start, label %exit

start:
  %first = add nsw i64 %length, -2
  br label %loop

loop:
  %before.hole = phi i64 [ %first, %start ], [ %before.parent, %move ]
  %parent = sdiv i64 %before.hole, 2
  %side = srem i64 %before.hole, 2
  %place = getelementptr i32, ptr %heap, i64 %parent
  %value = load i32, ptr %place
  %less = icmp ult i32 %value, %new
  br i1 %less, label %move, label %exit

move:
  store i32 %value, ptr %heap
  %before.parent = add nsw i64 %parent, -1
  %is.below.root = icmp sgt i64 %before.hole, 1
  br i1 %is.below.root, label %loop, label %exit

exit:
  %result = phi i64 [ 0, %entry ], [ %side, %loop ], [ %parent, %move ]
  ret i64 %result
}

define i64 @any_start(i64 %first) {
entry:
  br label %loop

loop:
  %value = phi i64 [ %first, %entry ], [ %next, %loop ]
  %half = sdiv i64 %value, 2
  %next = add nsw i64 %half, -1
  %more = icmp sgt i64 %value, 1
  br i1 %more, label %loop, label %exit

exit:
  ret i64 %half
}

define i64 @below_zero(i64 %length) {
entry:
  %is.positive = icmp sgt i64 %length, 1
  br i1 %is.positive, label %start, label %exit

start:
  br label %loop

loop:
  %value = phi i64 [ %length, %start ], [ %next, %loop ]
  %half = sdiv i64 %value, 2
  %next = add nsw i64 %half, -1
  %more = icmp sgt i64 %value, -5
  br i1 %more, label %loop, label %exit

exit:
  %result = phi i64 [ 0, %entry ], [ %half, %loop ]
  ret i64 %result
}

define i64 @negative_divisor(i64 %length) {
entry:
  %is.positive = icmp sgt i64 %length, 1
  br i1 %is.positive, label %start, label %exit

start:
  br label %loop

loop:
  %value = phi i64 [ %length, %start ], [ %next, %loop ]
  %half = sdiv i64 %value, -2
  %next = lshr i64 %value, 1
  %more = icmp sgt i64 %value, 3
  br i1 %more, label %loop, label %exit

exit:
  %result = phi i64 [ 0, %entry ], [ %half, %loop ]
  ret i64 %result
}

; expected:
; define i64 @heap(ptr %heap, i64 %length, i32 %new) {
; entry:
;   %is.heap = icmp sgt i64 %length, 1
;   br i1 %is.heap, label %start, label %exit
;
; start:                                            ; preds = %entry
;   %first = add nsw i64 %length, -2
;   br label %loop
;
; loop:                                             ; preds = %move, %start
;   %before.hole = phi i64 [ %first, %start ], [ %before.parent, %move ]
;   %parent = udiv i64 %before.hole, 2
;   %side = urem i64 %before.hole, 2
;   %place = getelementptr i32, ptr %heap, i64 %parent
;   %value = load i32, ptr %place, align 4
;   %less = icmp ult i32 %value, %new
;   br i1 %less, label %move, label %exit
;
; move:                                             ; preds = %loop
;   store i32 %value, ptr %heap, align 4
;   %before.parent = add nsw i64 %parent, -1
;   %is.below.root = icmp sgt i64 %before.hole, 1
;   br i1 %is.below.root, label %loop, label %exit
;
; exit:                                             ; preds = %move, %loop, %entry
;   %result = phi i64 [ 0, %entry ], [ %side, %loop ], [ %parent, %move ]
;   ret i64 %result
; }
;
; define i64 @any_start(i64 %first) {
; entry:
;   br label %loop
;
; loop:                                             ; preds = %loop, %entry
;   %value = phi i64 [ %first, %entry ], [ %next, %loop ]
;   %half = sdiv i64 %value, 2
;   %next = add nsw i64 %half, -1
;   %more = icmp sgt i64 %value, 1
;   br i1 %more, label %loop, label %exit
;
; exit:                                             ; preds = %loop
;   ret i64 %half
; }
;
; define i64 @below_zero(i64 %length) {
; entry:
;   %is.positive = icmp sgt i64 %length, 1
;   br i1 %is.positive, label %start, label %exit
;
; start:                                            ; preds = %entry
;   br label %loop
;
; loop:                                             ; preds = %loop, %start
;   %value = phi i64 [ %length, %start ], [ %next, %loop ]
;   %half = sdiv i64 %value, 2
;   %next = add nsw i64 %half, -1
;   %more = icmp sgt i64 %value, -5
;   br i1 %more, label %loop, label %exit
;
; exit:                                             ; preds = %loop, %entry
;   %result = phi i64 [ 0, %entry ], [ %half, %loop ]
;   ret i64 %result
; }
;
; define i64 @negative_divisor(i64 %length) {
; entry:
;   %is.positive = icmp sgt i64 %length, 1
;   br i1 %is.positive, label %start, label %exit
;
; start:                                            ; preds = %entry
;   br label %loop
;
; loop:                                             ; preds = %loop, %start
;   %value = phi i64 [ %length, %start ], [ %next, %loop ]
;   %half = sdiv i64 %value, -2
;   %next = lshr i64 %value, 1
;   %more = icmp sgt i64 %value, 3
;   br i1 %more, label %loop, label %exit
;
; exit:                                             ; preds = %loop, %entry
;   %result = phi i64 [ 0, %entry ], [ %half, %loop ]
;   ret i64 %result
; }
