; Selects stay where the chain to their condition is short, where they are a maximum, and where nothing is known of the function.
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
; attributes #0 = { nounwind willreturn memory(read) }
;
; !0 = !{!"function_entry_count", i64 1000}
