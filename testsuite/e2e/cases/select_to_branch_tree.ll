; A search tree: the next iteration waits for a comparison that a call makes. The select becomes a branch.
; opt: -passes=pleach-select-to-branch
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

declare i32 @compare(ptr, ptr) nounwind willreturn memory(read)

define ptr @find(ptr %root, ptr %key) !prof !0 {
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
; ; Function Attrs: nounwind willreturn memory(read)
; declare i32 @compare(ptr, ptr) #0
;
; define ptr @find(ptr %root, ptr %key) !prof !0 {
; entry:
;   br label %loop
;
; loop:                                             ; preds = %2, %entry
;   %node = phi ptr [ %root, %entry ], [ %next, %2 ]
;   %order = call i32 @compare(ptr %key, ptr %node)
;   %less = icmp slt i32 %order, 0
;   %right = getelementptr i8, ptr %node, i64 8
;   %0 = freeze i1 %less
;   br i1 %0, label %1, label %2
;
; 1:                                                ; preds = %loop
;   br label %2
;
; 2:                                                ; preds = %loop, %1
;   %child = phi ptr [ %node, %1 ], [ %right, %loop ]
;   %next = load ptr, ptr %child, align 8
;   %done = icmp eq ptr %next, null
;   br i1 %done, label %end, label %loop
;
; end:                                              ; preds = %2
;   ret ptr %node
; }
;
; attributes #0 = { nounwind willreturn memory(read) }
;
; !0 = !{!"function_entry_count", i64 1000}
