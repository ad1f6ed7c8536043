; Probes in the arms of a loop that can be vectorised without them are set aside, and so the stores become one. Those of the
; loop's other blocks stay. Where an arm remains, metadata holds its probes.
; opt: -passes=function(pleach-hoist-probes,pleach-set-probes-aside)
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

declare void @llvm.pseudoprobe(i64, i64, i32, i64)

define void @vectorisable(ptr noalias %to, ptr noalias %from, i64 %count, i32 %more, i1 %adds) {
entry:
  br label %loop

loop:
  %i = phi i64 [ 0, %entry ], [ %next, %latch ]
  %from.i = getelementptr inbounds i32, ptr %from, i64 %i
  %x = load i32, ptr %from.i, align 4
  %to.i = getelementptr inbounds i32, ptr %to, i64 %i
  store i32 %x, ptr %to.i, align 4
  call void @llvm.pseudoprobe(i64 1, i64 1, i32 0, i64 -1)
  br i1 %adds, label %add, label %latch

add:
  call void @llvm.pseudoprobe(i64 1, i64 2, i32 0, i64 -1)
  %sum = add i32 %x, %more
  store i32 %sum, ptr %to.i, align 4
  br label %latch

latch:
  call void @llvm.pseudoprobe(i64 1, i64 3, i32 0, i64 -1)
  %next = add nuw i64 %i, 1
  %ends = icmp eq i64 %next, %count
  br i1 %ends, label %exit, label %loop

exit:
  ret void
}

define void @stays(ptr noalias %to, ptr noalias %from, i64 %count) {
entry:
  br label %loop

loop:
  %i = phi i64 [ 0, %entry ], [ %next, %latch ]
  %from.i = getelementptr inbounds i32, ptr %from, i64 %i
  %x = load i32, ptr %from.i, align 4
  %positive = icmp sgt i32 %x, 0
  br i1 %positive, label %arm, label %latch

arm:
  call void @llvm.pseudoprobe(i64 1, i64 2, i32 0, i64 -1)
  call void @llvm.pseudoprobe(i64 2, i64 1, i32 0, i64 -1)
  %to.i = getelementptr inbounds i32, ptr %to, i64 %i
  store i32 %x, ptr %to.i, align 4
  br label %latch

latch:
  %next = add nuw i64 %i, 1
  %ends = icmp eq i64 %next, %count
  br i1 %ends, label %exit, label %loop

exit:
  ret void
}

; expected:
; ; Function Attrs: nocallback nofree nosync nounwind willreturn memory(inaccessiblemem: readwrite)
; declare void @llvm.pseudoprobe(i64, i64, i32, i64) #0
;
; define void @vectorisable(ptr noalias %to, ptr noalias %from, i64 %count, i32 %more, i1 %adds) {
; entry:
;   br label %loop
;
; loop:                                             ; preds = %loop, %entry
;   %i = phi i64 [ 0, %entry ], [ %next, %loop ]
;   call void @llvm.pseudoprobe(i64 1, i64 1, i32 0, i64 -1)
;   %from.i = getelementptr inbounds i32, ptr %from, i64 %i
;   %x = load i32, ptr %from.i, align 4
;   %to.i = getelementptr inbounds i32, ptr %to, i64 %i
;   %sum = add i32 %x, %more
;   %spec.select = select i1 %adds, i32 %sum, i32 %x
;   store i32 %spec.select, ptr %to.i, align 4
;   call void @llvm.pseudoprobe(i64 1, i64 3, i32 0, i64 -1)
;   %next = add nuw i64 %i, 1
;   %ends = icmp eq i64 %next, %count
;   br i1 %ends, label %exit, label %loop
;
; exit:                                             ; preds = %loop
;   ret void
; }
;
; define void @stays(ptr noalias %to, ptr noalias %from, i64 %count) {
; entry:
;   br label %loop
;
; loop:                                             ; preds = %latch, %entry
;   %i = phi i64 [ 0, %entry ], [ %next, %latch ]
;   %from.i = getelementptr inbounds i32, ptr %from, i64 %i
;   %x = load i32, ptr %from.i, align 4
;   %positive = icmp sgt i32 %x, 0
;   br i1 %positive, label %arm, label %latch
;
; arm:                                              ; preds = %loop
;   %to.i = getelementptr inbounds i32, ptr %to, i64 %i
;   store i32 %x, ptr %to.i, align 4
;   br label %latch, !pleach.set-aside !0
;
; latch:                                            ; preds = %arm, %loop
;   %next = add nuw i64 %i, 1
;   %ends = icmp eq i64 %next, %count
;   br i1 %ends, label %exit, label %loop
;
; exit:                                             ; preds = %latch
;   ret void
; }
;
; attributes #0 = { nocallback nofree nosync nounwind willreturn memory(inaccessiblemem: readwrite) }
;
; !0 = !{!1, !2}
; !1 = !{null, i64 2, i64 1, i32 0, i64 -1}
; !2 = !{null, i64 1, i64 2, i32 0, i64 -1}
