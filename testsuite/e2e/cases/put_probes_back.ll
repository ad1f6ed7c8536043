; A loop that calls a function cannot be vectorised, and keeps its probes. Those that were set aside are put back where the
; loop was not vectorised.
; opt: -passes=function(pleach-set-probes-aside,pleach-put-probes-back)
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

declare void @llvm.pseudoprobe(i64, i64, i32, i64)
declare void @opaque(ptr)

define void @calls(ptr noalias %from, i64 %count) {
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
  call void @opaque(ptr %from.i)
  br label %latch

latch:
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
; declare void @opaque(ptr)
;
; define void @calls(ptr noalias %from, i64 %count) {
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
;   call void @llvm.pseudoprobe(i64 1, i64 2, i32 0, i64 -1)
;   call void @opaque(ptr %from.i)
;   br label %latch
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
;   call void @llvm.pseudoprobe(i64 1, i64 2, i32 0, i64 -1)
;   call void @llvm.pseudoprobe(i64 2, i64 1, i32 0, i64 -1)
;   %to.i = getelementptr inbounds i32, ptr %to, i64 %i
;   store i32 %x, ptr %to.i, align 4
;   br label %latch
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
