; Assembly may define labels: its block is not duplicated.
; opt: -passes=pleach-superblocks -pleach-random=1 -pleach-superblocks-aggressive -pleach-summary
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

define i32 @join(i1 %c, i32 %x) !prof !0 {
entry:
  call void @llvm.pseudoprobe(i64 77, i64 1, i32 0, i64 -1)
  br i1 %c, label %left, label %right, !prof !1
left:
  call void @llvm.pseudoprobe(i64 77, i64 2, i32 0, i64 -1)
  %l = add i32 %x, 1
  br label %middle
right:
  call void @llvm.pseudoprobe(i64 77, i64 3, i32 0, i64 -1)
  %r = mul i32 %x, 3
  br label %middle
middle:
  %m = phi i32 [ 0, %left ], [ %r, %right ]
  call void @llvm.pseudoprobe(i64 77, i64 4, i32 0, i64 -1)
  call void asm sideeffect "label:", ""()
  %z = icmp eq i32 %m, 0
  br i1 %z, label %zero, label %other, !prof !1
zero:
  ret i32 %x
other:
  %s = sub i32 %m, %x
  ret i32 %s
}

declare void @llvm.pseudoprobe(i64, i64, i32, i64)

!pleach.marked = !{!2}
!2 = !{i64 77, i64 5, i64 6, i64 7}
!0 = !{!"function_entry_count", i64 100000}
!1 = !{!"branch_weights", i32 99, i32 1}

; expected:
; pleach: superblocks_assembly.ll: 0 superblocks in 0 functions, 0 instructions copied (+0.0 %)
;
; define i32 @join(i1 %c, i32 %x) !prof !0 {
; entry:
;   br i1 %c, label %left, label %right, !prof !1
;
; left:                                             ; preds = %entry
;   %l = add i32 %x, 1
;   call void asm sideeffect "/* 0 */", ""() #1
;   br label %middle
;
; right:                                            ; preds = %entry
;   %r = mul i32 %x, 3
;   call void asm sideeffect "/* 1 */", ""() #1
;   br label %middle
;
; middle:                                           ; preds = %right, %left
;   %m = phi i32 [ 0, %left ], [ %r, %right ]
;   call void asm sideeffect "label:", ""()
;   %z = icmp eq i32 %m, 0
;   br i1 %z, label %zero, label %other, !prof !1
;
; zero:                                             ; preds = %middle
;   ret i32 %x
;
; other:                                            ; preds = %middle
;   %s = sub i32 %m, %x
;   call void asm sideeffect "/* 3 */", ""() #1
;   ret i32 %s
; }
;
; ; Function Attrs: nocallback nofree nosync nounwind willreturn memory(inaccessiblemem: readwrite)
; declare void @llvm.pseudoprobe(i64, i64, i32, i64) #0
;
; attributes #0 = { nocallback nofree nosync nounwind willreturn memory(inaccessiblemem: readwrite) }
; attributes #1 = { nounwind }
;
; !0 = !{!"function_entry_count", i64 100000}
; !1 = !{!"branch_weights", i32 99, i32 1}
