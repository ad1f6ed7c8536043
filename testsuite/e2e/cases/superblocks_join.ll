; A join is duplicated for a predecessor behind which its branch is decided. Markers and their table are removed.
; opt: -passes=pleach-superblocks -pleach-random=1 -pleach-superblocks-aggressive -pleach-verify -pleach-summary
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

define i32 @join(i1 %c, i32 %x) !prof !0 !dbg !7 {
entry:
    #dbg_label(!11, !9)
  br i1 %c, label %left, label %right, !prof !1
left:
    #dbg_label(!12, !9)
  %l = add i32 %x, 1
  br label %middle
right:
    #dbg_label(!13, !9)
  %r = mul i32 %x, 3
  br label %middle
middle:
  %m = phi i32 [ 0, %left ], [ %r, %right ]
    #dbg_label(!14, !9)
  %z = icmp eq i32 %m, 0
  br i1 %z, label %zero, label %other, !prof !1
zero:
  ret i32 %x
other:
  %s = sub i32 %m, %x
  ret i32 %s
}

!llvm.dbg.cu = !{!4}
!llvm.module.flags = !{!3}
!pleach.marked = !{!2}
!2 = !{i64 77, i64 5, i64 6, i64 7}
!0 = !{!"function_entry_count", i64 100000}
!1 = !{!"branch_weights", i32 99, i32 1}
!3 = !{i32 2, !"Debug Info Version", i32 3}
!4 = distinct !DICompileUnit(language: DW_LANG_C, file: !5, emissionKind: NoDebug)
!5 = !DIFile(filename: "join.c", directory: "")
!6 = !DISubroutineType(types: !{})
!7 = distinct !DISubprogram(name: "join", file: !5, unit: !4, type: !6)
!9 = !DILocation(line: 0, scope: !7)
!11 = !DILabel(scope: !7, name: "pleach.4D", file: !5, line: 0, isArtificial: true)
!12 = !DILabel(scope: !7, name: "pleach.4D", file: !5, line: 1, isArtificial: true)
!13 = !DILabel(scope: !7, name: "pleach.4D", file: !5, line: 2, isArtificial: true)
!14 = !DILabel(scope: !7, name: "pleach.4D", file: !5, line: 3, isArtificial: true)

; expected:
; pleach: superblocks_join.ll: 1 superblocks in 1 functions, 4 instructions copied (+36.4 %)
;
; define i32 @join(i1 %c, i32 %x) #0 !dbg !3 !prof !6 {
; entry:
;   br i1 %c, label %left, label %right, !prof !7
;
; left:                                             ; preds = %entry
;   %l = add i32 %x, 1
;   br label %middle
;
; right:                                            ; preds = %entry
;   %r = mul i32 %x, 3
;   br label %middle.sb
;
; middle:                                           ; preds = %left
;   %m = phi i32 [ 0, %left ]
;   %z = icmp eq i32 %m, 0
;   call void asm sideeffect "/* 0 */", ""() #1
;   br i1 %z, label %zero, label %other, !prof !8
;
; zero:                                             ; preds = %middle
;   ret i32 %x
;
; other:                                            ; preds = %middle.sb, %middle
;   %m1 = phi i32 [ %m.sb, %middle.sb ], [ %m, %middle ]
;   %s = sub i32 %m1, %x
;   ret i32 %s
;
; middle.sb:                                        ; preds = %right
;   %m.sb = phi i32 [ %r, %right ]
;   %z.sb = icmp eq i32 %m.sb, 0
;   call void asm sideeffect "/* 2 */", ""() #1
;   br i1 %z.sb, label %zero.sb, label %other, !prof !9
;
; zero.sb:                                          ; preds = %middle.sb
;   ret i32 %x
; }
;
; attributes #0 = { "pleach-duplicated" }
; attributes #1 = { nounwind }
;
; !llvm.dbg.cu = !{!0}
; !llvm.module.flags = !{!2}
;
; !0 = distinct !DICompileUnit(language: DW_LANG_C, file: !1, isOptimized: false, runtimeVersion: 0, emissionKind: NoDebug)
; !1 = !DIFile(filename: "join.c", directory: "")
; !2 = !{i32 2, !"Debug Info Version", i32 3}
; !3 = distinct !DISubprogram(name: "join", scope: null, file: !1, type: !4, spFlags: DISPFlagDefinition, unit: !0)
; !4 = !DISubroutineType(types: !5)
; !5 = !{}
; !6 = !{!"function_entry_count", i64 100000}
; !7 = !{!"branch_weights", i32 99, i32 1}
; !8 = !{!"branch_weights", i32 989898, i32 10101}
; !9 = !{!"branch_weights", i32 1000000, i32 1}
