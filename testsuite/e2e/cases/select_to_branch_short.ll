; Selects stay where the chain to their condition is short, also with divisions by constants, where they are a maximum, and where nothing is known of the function.
; opt: -passes=pleach-select-to-branch
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

define i64 @short(ptr %p, i64 %n) !prof !0 {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %j, %loop ]
  %sum = phi i64 [ 0, %entry ], [ %sum.next, %loop ]
  %max = phi i64 [ 0, %entry ], [ %max.next, %loop ]
  %a = getelementptr i64, ptr %p, i64 %i
  %x = load i64, ptr %a
  %big = icmp sgt i64 %sum, 100
  %sum.next = select i1 %big, i64 %x, i64 %sum
  %more = icmp sgt i64 %x, %max
  %max.next = select i1 %more, i64 %x, i64 %max
  %j = add i64 %i, 1
  %done = icmp eq i64 %j, %n
  br i1 %done, label %end, label %loop
end:
  %r = add i64 %sum.next, %max.next
  ret i64 %r
}

declare i32 @compare(ptr, ptr) nounwind willreturn memory(read)

define ptr @uncounted(ptr %root, ptr %key) {
entry:
  br label %loop
loop:
  %node = phi ptr [ %root, %entry ], [ %next, %loop ]
  %order = call i32 @compare(ptr %key, ptr %node)
  %less = icmp slt i32 %order, 0
  %right = getelementptr i8, ptr %node, i64 8
  %child = select i1 %less, ptr %node, ptr %right
  %next = load ptr, ptr %child
  %done = icmp eq ptr %next, null
  br i1 %done, label %end, label %loop
end:
  ret ptr %node
}

; As in a merge: the next elements to compare depend on the last comparison.
define i32 @merge(ptr %left, ptr %right, ptr %end) !prof !0 {
entry:
  br label %loop
loop:
  %l = phi ptr [ %left, %entry ], [ %l.next, %loop ]
  %r = phi ptr [ %right, %entry ], [ %r.next, %loop ]
  %sum = phi i32 [ 0, %entry ], [ %sum.next, %loop ]
  %x = load i32, ptr %l
  %y = load i32, ptr %r
  %a = sdiv i32 %x, 10
  %b = sdiv i32 %y, 10
  %less = icmp slt i32 %a, %b
  %l.after = getelementptr i8, ptr %l, i64 4
  %r.after = getelementptr i8, ptr %r, i64 4
  %l.next = select i1 %less, ptr %l.after, ptr %l
  %r.next = select i1 %less, ptr %r, ptr %r.after
  %sum.next = add i32 %sum, %x
  %done = icmp eq ptr %l.next, %end
  br i1 %done, label %end.block, label %loop
end.block:
  ret i32 %sum.next
}

!0 = !{!"function_entry_count", i64 1000}

; expected:
; define i64 @short(ptr %p, i64 %n) !prof !0 {
; entry:
;   br label %loop
;
; loop:                                             ; preds = %loop, %entry
;   %i = phi i64 [ 0, %entry ], [ %j, %loop ]
;   %sum = phi i64 [ 0, %entry ], [ %sum.next, %loop ]
;   %max = phi i64 [ 0, %entry ], [ %max.next, %loop ]
;   %a = getelementptr i64, ptr %p, i64 %i
;   %x = load i64, ptr %a, align 8
;   %big = icmp sgt i64 %sum, 100
;   %sum.next = select i1 %big, i64 %x, i64 %sum
;   %more = icmp sgt i64 %x, %max
;   %max.next = select i1 %more, i64 %x, i64 %max
;   %j = add i64 %i, 1
;   %done = icmp eq i64 %j, %n
;   br i1 %done, label %end, label %loop
;
; end:                                              ; preds = %loop
;   %r = add i64 %sum.next, %max.next
;   ret i64 %r
; }
;
; ; Function Attrs: nounwind willreturn memory(read)
; declare i32 @compare(ptr, ptr) #0
;
; define ptr @uncounted(ptr %root, ptr %key) {
; entry:
;   br label %loop
;
; loop:                                             ; preds = %loop, %entry
;   %node = phi ptr [ %root, %entry ], [ %next, %loop ]
;   %order = call i32 @compare(ptr %key, ptr %node)
;   %less = icmp slt i32 %order, 0
;   %right = getelementptr i8, ptr %node, i64 8
;   %child = select i1 %less, ptr %node, ptr %right
;   %next = load ptr, ptr %child, align 8
;   %done = icmp eq ptr %next, null
;   br i1 %done, label %end, label %loop
;
; end:                                              ; preds = %loop
;   ret ptr %node
; }
;
; define i32 @merge(ptr %left, ptr %right, ptr %end) !prof !0 {
; entry:
;   br label %loop
;
; loop:                                             ; preds = %loop, %entry
;   %l = phi ptr [ %left, %entry ], [ %l.next, %loop ]
;   %r = phi ptr [ %right, %entry ], [ %r.next, %loop ]
;   %sum = phi i32 [ 0, %entry ], [ %sum.next, %loop ]
;   %x = load i32, ptr %l, align 4
;   %y = load i32, ptr %r, align 4
;   %a = sdiv i32 %x, 10
;   %b = sdiv i32 %y, 10
;   %less = icmp slt i32 %a, %b
;   %l.after = getelementptr i8, ptr %l, i64 4
;   %r.after = getelementptr i8, ptr %r, i64 4
;   %l.next = select i1 %less, ptr %l.after, ptr %l
;   %r.next = select i1 %less, ptr %r, ptr %r.after
;   %sum.next = add i32 %sum, %x
;   %done = icmp eq ptr %l.next, %end
;   br i1 %done, label %end.block, label %loop
;
; end.block:                                        ; preds = %loop
;   ret i32 %sum.next
; }
;
; attributes #0 = { nounwind willreturn memory(read) }
;
; !0 = !{!"function_entry_count", i64 1000}
