; A call of mempcpy with known lengths becomes memcpy, which LLVM's pass specialises. One without, and one of a function
; of that name that is not the C library's, are left alone. memcmp keeps its lengths through InstCombine, and becomes bcmp
; then, if only equality is asked for; with a constant length it is LLVM's.
; opt: -passes=function(pleach-keep-lengths,instcombine,pleach-reveal-lengths),function(pgo-memop-opt)
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

declare ptr @mempcpy(ptr, ptr, i64)
declare i32 @memcmp(ptr, ptr, i64)

define ptr @known(ptr %to, ptr %from, i64 %n) !prof !0 {
  %end = call ptr @mempcpy(ptr %to, ptr %from, i64 %n), !pleach.lengths !1
  ret ptr %end
}

define ptr @unknown(ptr %to, ptr %from, i64 %n) !prof !0 {
  %end = call ptr @mempcpy(ptr %to, ptr %from, i64 %n)
  ret ptr %end
}

define ptr @another(ptr %to, ptr %from, i64 %n) !prof !0 {
  %end = call ptr @mempcpy(ptr %to, ptr %from, i64 %n) nobuiltin, !pleach.lengths !1
  ret ptr %end
}

define i1 @equal(ptr %a, ptr %b, i64 %n) !prof !0 {
  %difference = call i32 @memcmp(ptr %a, ptr %b, i64 %n), !pleach.lengths !1
  %is_equal = icmp eq i32 %difference, 0
  ret i1 %is_equal
}

define i1 @less(ptr %a, ptr %b, i64 %n) !prof !0 {
  %difference = call i32 @memcmp(ptr %a, ptr %b, i64 %n), !pleach.lengths !1
  %is_less = icmp slt i32 %difference, 0
  ret i1 %is_less
}

define i1 @another_equal(ptr %a, ptr %b, i64 %n) !prof !0 {
  %difference = call i32 @memcmp(ptr %a, ptr %b, i64 %n) nobuiltin, !pleach.lengths !1
  %is_equal = icmp eq i32 %difference, 0
  ret i1 %is_equal
}

define i1 @equal_or_empty(ptr %a, ptr %b, i64 %n) !prof !0 {
entry:
  %is_empty = icmp eq i64 %n, 0
  br i1 %is_empty, label %done, label %compare

compare:
  %difference = call i32 @memcmp(ptr %a, ptr %b, i64 %n), !pleach.lengths !1
  br label %done

done:
  %result = phi i32 [ 0, %entry ], [ %difference, %compare ]
  %is_equal = icmp eq i32 %result, 0
  ret i1 %is_equal
}

define i1 @constant(ptr %a, ptr %b) !prof !0 {
  %difference = call i32 @memcmp(ptr %a, ptr %b, i64 4), !pleach.lengths !1
  %is_equal = icmp eq i32 %difference, 0
  ret i1 %is_equal
}

!0 = !{!"function_entry_count", i64 10000}
!1 = !{!"VP", i32 1, i64 10000, i64 1, i64 6000, i64 3, i64 3000}

; expected:
; declare ptr @mempcpy(ptr, ptr, i64)
;
; declare i32 @memcmp(ptr, ptr, i64)
;
; define ptr @known(ptr %to, ptr %from, i64 %n) !prof !0 {
;   switch i64 %n, label %MemOP.Default [
;     i64 1, label %MemOP.Case.1
;     i64 3, label %MemOP.Case.3
;   ], !prof !1
;
; MemOP.Case.1:                                     ; preds = %0
;   call void @llvm.memcpy.p0.p0.i64(ptr align 1 %to, ptr align 1 %from, i64 1, i1 false)
;   br label %MemOP.Merge
;
; MemOP.Case.3:                                     ; preds = %0
;   call void @llvm.memcpy.p0.p0.i64(ptr align 1 %to, ptr align 1 %from, i64 3, i1 false)
;   br label %MemOP.Merge
;
; MemOP.Default:                                    ; preds = %0
;   call void @llvm.memcpy.p0.p0.i64(ptr align 1 %to, ptr align 1 %from, i64 %n, i1 false)
;   br label %MemOP.Merge
;
; MemOP.Merge:                                      ; preds = %MemOP.Case.3, %MemOP.Case.1, %MemOP.Default
;   %1 = getelementptr inbounds i8, ptr %to, i64 %n
;   ret ptr %1
; }
;
; define ptr @unknown(ptr %to, ptr %from, i64 %n) !prof !0 {
;   call void @llvm.memcpy.p0.p0.i64(ptr align 1 %to, ptr align 1 %from, i64 %n, i1 false)
;   %end = getelementptr inbounds i8, ptr %to, i64 %n
;   ret ptr %end
; }
;
; define ptr @another(ptr %to, ptr %from, i64 %n) !prof !0 {
;   %end = call ptr @mempcpy(ptr %to, ptr %from, i64 %n) #2, !prof !2
;   ret ptr %end
; }
;
; define i1 @equal(ptr %a, ptr %b, i64 %n) !prof !0 {
;   switch i64 %n, label %MemOP.Default [
;     i64 1, label %MemOP.Case.1
;     i64 3, label %MemOP.Case.3
;   ], !prof !1
;
; MemOP.Case.1:                                     ; preds = %0
;   %1 = call i32 @bcmp(ptr %a, ptr %b, i64 1)
;   br label %MemOP.Merge
;
; MemOP.Case.3:                                     ; preds = %0
;   %2 = call i32 @bcmp(ptr %a, ptr %b, i64 3)
;   br label %MemOP.Merge
;
; MemOP.Default:                                    ; preds = %0
;   %bcmp = call i32 @bcmp(ptr %a, ptr %b, i64 %n)
;   br label %MemOP.Merge
;
; MemOP.Merge:                                      ; preds = %MemOP.Case.3, %MemOP.Case.1, %MemOP.Default
;   %MemOP.RVMerge = phi i32 [ %bcmp, %MemOP.Default ], [ %1, %MemOP.Case.1 ], [ %2, %MemOP.Case.3 ]
;   %is_equal = icmp eq i32 %MemOP.RVMerge, 0
;   ret i1 %is_equal
; }
;
; define i1 @less(ptr %a, ptr %b, i64 %n) !prof !0 {
;   switch i64 %n, label %MemOP.Default [
;     i64 1, label %MemOP.Case.1
;     i64 3, label %MemOP.Case.3
;   ], !prof !1
;
; MemOP.Case.1:                                     ; preds = %0
;   %1 = call i32 @memcmp(ptr %a, ptr %b, i64 1)
;   br label %MemOP.Merge
;
; MemOP.Case.3:                                     ; preds = %0
;   %2 = call i32 @memcmp(ptr %a, ptr %b, i64 3)
;   br label %MemOP.Merge
;
; MemOP.Default:                                    ; preds = %0
;   %difference = call i32 @memcmp(ptr %a, ptr %b, i64 %n)
;   br label %MemOP.Merge
;
; MemOP.Merge:                                      ; preds = %MemOP.Case.3, %MemOP.Case.1, %MemOP.Default
;   %MemOP.RVMerge = phi i32 [ %difference, %MemOP.Default ], [ %1, %MemOP.Case.1 ], [ %2, %MemOP.Case.3 ]
;   %is_less = icmp slt i32 %MemOP.RVMerge, 0
;   ret i1 %is_less
; }
;
; define i1 @another_equal(ptr %a, ptr %b, i64 %n) !prof !0 {
;   %difference = call i32 @memcmp(ptr %a, ptr %b, i64 %n) #2, !prof !2
;   %is_equal = icmp eq i32 %difference, 0
;   ret i1 %is_equal
; }
;
; define i1 @equal_or_empty(ptr %a, ptr %b, i64 %n) !prof !0 {
; entry:
;   %is_empty = icmp eq i64 %n, 0
;   br i1 %is_empty, label %done, label %compare
;
; compare:                                          ; preds = %entry
;   switch i64 %n, label %MemOP.Default [
;     i64 1, label %MemOP.Case.1
;     i64 3, label %MemOP.Case.3
;   ], !prof !3
;
; MemOP.Case.1:                                     ; preds = %compare
;   %0 = call i32 @bcmp(ptr %a, ptr %b, i64 1)
;   br label %MemOP.Merge
;
; MemOP.Case.3:                                     ; preds = %compare
;   %1 = call i32 @bcmp(ptr %a, ptr %b, i64 3)
;   br label %MemOP.Merge
;
; MemOP.Default:                                    ; preds = %compare
;   %bcmp = call i32 @bcmp(ptr %a, ptr %b, i64 %n)
;   br label %MemOP.Merge
;
; MemOP.Merge:                                      ; preds = %MemOP.Case.3, %MemOP.Case.1, %MemOP.Default
;   %MemOP.RVMerge = phi i32 [ %bcmp, %MemOP.Default ], [ %0, %MemOP.Case.1 ], [ %1, %MemOP.Case.3 ]
;   %2 = icmp eq i32 %MemOP.RVMerge, 0
;   br label %done
;
; done:                                             ; preds = %MemOP.Merge, %entry
;   %result = phi i1 [ true, %entry ], [ %2, %MemOP.Merge ]
;   ret i1 %result
; }
;
; define i1 @constant(ptr %a, ptr %b) !prof !0 {
;   %bcmp = call i32 @bcmp(ptr noundef nonnull dereferenceable(4) %a, ptr noundef nonnull dereferenceable(4) %b, i64 4)
;   %is_equal = icmp eq i32 %bcmp, 0
;   ret i1 %is_equal
; }
;
; ; Function Attrs: nocallback nofree nounwind willreturn memory(argmem: readwrite)
; declare void @llvm.memcpy.p0.p0.i64(ptr noalias writeonly captures(none), ptr noalias readonly captures(none), i64, i1 immarg) #0
;
; ; Function Attrs: nocallback nofree nounwind willreturn memory(argmem: read)
; declare i32 @bcmp(ptr captures(none), ptr captures(none), i64) #1
;
; attributes #0 = { nocallback nofree nounwind willreturn memory(argmem: readwrite) }
; attributes #1 = { nocallback nofree nounwind willreturn memory(argmem: read) }
; attributes #2 = { nobuiltin }
;
; !0 = !{!"function_entry_count", i64 10000}
; !1 = !{!"branch_weights", i32 1000, i32 6000, i32 3000}
; !2 = !{!"VP", i32 1, i64 10000, i64 1, i64 6000, i64 3, i64 3000}
; !3 = !{!"branch_weights", i32 625, i32 3750, i32 1875}
