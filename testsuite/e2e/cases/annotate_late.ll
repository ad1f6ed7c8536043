; Before blocks are numbered at the late anchor, calls in tail position return where they are, as code generation lets
; them. Others keep the shared block: a result that is used twice, a call that is not marked, extensions that differ.
; opt: -passes=pleach-annotate -pleach-anchor=late
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

declare i32 @work(i32)
declare signext i32 @extended(i32)

define i32 @all(i1 %c) {
entry:
  br i1 %c, label %one, label %two
one:
  %a = tail call i32 @work(i32 1)
  br label %end
two:
  %b = tail call i32 @work(i32 2)
  br label %end
end:
  %result = phi i32 [ %a, %one ], [ %b, %two ]
  ret i32 %result
}

define void @one_of_two(i1 %c, ptr %p) {
entry:
  br i1 %c, label %one, label %two
one:
  %a = tail call i32 @work(i32 1)
  br label %end
two:
  %b = call i32 @work(i32 2)
  br label %end
end:
  ret void
}

define i32 @none(i1 %c, ptr %p) {
entry:
  br i1 %c, label %one, label %two
one:
  %a = tail call i32 @work(i32 1)
  store i32 %a, ptr %p
  br label %end
two:
  %b = tail call signext i32 @extended(i32 2)
  br label %end
end:
  %result = phi i32 [ %a, %one ], [ %b, %two ]
  ret i32 %result
}

; expected:
; module asm ".pushsection .pleach_cfg,\22G\22,@progbits,.pleach_cfg.981f9c7603a681a1.0014d90ef4135121,comdat"
; module asm ".quad 0x10246434c50,0xdaf6a3c000000051,0x981f9c7603a681a1,0xc0a2e25b00000000,0x14d90ef4135121,0x6e6e61106c6c6103,0x616c5f657461746f,0x201036c6c2e6574"
; module asm ".quad 0x2000000010201,0x6704010200020000,0x17fbca965872ce9,0xbca965872ce96704,0x7f"
; module asm ".popsection"
; module asm ".pushsection .pleach_cfg,\22G\22,@progbits,.pleach_cfg.8c2ca0ef3cd9a998.0e83e6e1673aa89c,comdat"
; module asm ".quad 0x10246434c50,0xb56fbf960000005d,0x8c2ca0ef3cd9a998,0xc0a2e25b00000000,0xe83e6e1673aa89c,0x5f666f5f656e6f0a,0x6f6e6e61106f7774,0x74616c5f65746174"
; module asm ".quad 0x10201046c6c2e65,0x100020000000102,0x1000000020101,0x65872ce967040102,0x2ce96704017fbca9,0x7fbca96587"
; module asm ".popsection"
; module asm ".pushsection .pleach_cfg,\22G\22,@progbits,.pleach_cfg.9db7fd424c4a4c33.0fc9f4eec572579b,comdat"
; module asm ".quad 0x10246434c50,0x7b7c490c00000058,0x9db7fd424c4a4c33,0xc0a2e25b00000000,0xfc9f4eec572579b,0x6e6110656e6f6e04,0x6c5f657461746f6e,0x1046c6c2e657461"
; module asm ".quad 0x201010001020102,0x20101010003,0xe967040102000200,0x4017fbca965872c,0xfcb683b3d8ee7d3"
; module asm ".popsection"
;
; declare i32 @work(i32)
;
; declare signext i32 @extended(i32)
;
; define i32 @all(i1 %c) !dbg !6 {
; entry:
;   call void @llvm.pseudoprobe(i64 -7485092024985157215, i64 1, i32 0, i64 -1), !dbg !8
;   br i1 %c, label %one, label %two
;
; one:                                              ; preds = %entry
;   call void @llvm.pseudoprobe(i64 -7485092024985157215, i64 2, i32 0, i64 -1), !dbg !8
;   %a = tail call i32 @work(i32 1), !dbg !9
;   ret i32 %a
;
; two:                                              ; preds = %entry
;   call void @llvm.pseudoprobe(i64 -7485092024985157215, i64 3, i32 0, i64 -1), !dbg !8
;   %b = tail call i32 @work(i32 2), !dbg !11
;   ret i32 %b
; }
;
; define void @one_of_two(i1 %c, ptr %p) !dbg !13 {
; entry:
;   call void @llvm.pseudoprobe(i64 -8346119060045846120, i64 1, i32 0, i64 -1), !dbg !14
;   br i1 %c, label %one, label %two
;
; one:                                              ; preds = %entry
;   call void @llvm.pseudoprobe(i64 -8346119060045846120, i64 2, i32 0, i64 -1), !dbg !14
;   %a = tail call i32 @work(i32 1), !dbg !15
;   ret void
;
; two:                                              ; preds = %entry
;   call void @llvm.pseudoprobe(i64 -8346119060045846120, i64 3, i32 0, i64 -1), !dbg !14
;   %b = call i32 @work(i32 2), !dbg !17
;   br label %end
;
; end:                                              ; preds = %two
;   call void @llvm.pseudoprobe(i64 -8346119060045846120, i64 4, i32 0, i64 -1), !dbg !14
;   ret void
; }
;
; define i32 @none(i1 %c, ptr %p) !dbg !19 {
; entry:
;   call void @llvm.pseudoprobe(i64 -7081913427827209165, i64 1, i32 0, i64 -1), !dbg !20
;   br i1 %c, label %one, label %two
;
; one:                                              ; preds = %entry
;   call void @llvm.pseudoprobe(i64 -7081913427827209165, i64 2, i32 0, i64 -1), !dbg !20
;   %a = tail call i32 @work(i32 1), !dbg !21
;   store i32 %a, ptr %p, align 4
;   br label %end
;
; two:                                              ; preds = %entry
;   call void @llvm.pseudoprobe(i64 -7081913427827209165, i64 3, i32 0, i64 -1), !dbg !20
;   %b = tail call signext i32 @extended(i32 2), !dbg !23
;   br label %end
;
; end:                                              ; preds = %two, %one
;   %result = phi i32 [ %a, %one ], [ %b, %two ]
;   call void @llvm.pseudoprobe(i64 -7081913427827209165, i64 4, i32 0, i64 -1), !dbg !20
;   ret i32 %result
; }
;
; ; Function Attrs: nocallback nofree nosync nounwind willreturn memory(inaccessiblemem: readwrite)
; declare void @llvm.pseudoprobe(i64, i64, i32, i64) #0
;
; attributes #0 = { nocallback nofree nosync nounwind willreturn memory(inaccessiblemem: readwrite) }
;
; !llvm.module.flags = !{!0}
; !llvm.dbg.cu = !{!1}
; !llvm.pseudo_probe_desc = !{!3, !4, !5}
;
; !0 = !{i32 2, !"Debug Info Version", i32 3}
; !1 = distinct !DICompileUnit(language: DW_LANG_C, file: !2, producer: "pleach", isOptimized: true, runtimeVersion: 0, emissionKind: NoDebug)
; !2 = !DIFile(filename: "annotate_late.ll", directory: "")
; !3 = !{i64 -7485092024985157215, i64 5868157781889313, !"all"}
; !4 = !{i64 -8346119060045846120, i64 1045933394254014620, !"one_of_two"}
; !5 = !{i64 -7081913427827209165, i64 1137709687239759771, !"none"}
; !6 = distinct !DISubprogram(name: "all", linkageName: "all", scope: !2, file: !2, type: !7, flags: DIFlagArtificial, spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !1)
; !7 = !DISubroutineType(types: null)
; !8 = !DILocation(line: 0, scope: !6)
; !9 = !DILocation(line: 0, scope: !10)
; !10 = !DILexicalBlockFile(scope: !6, file: !2, discriminator: 455082023)
; !11 = !DILocation(line: 0, scope: !12)
; !12 = !DILexicalBlockFile(scope: !6, file: !2, discriminator: 455082031)
; !13 = distinct !DISubprogram(name: "one_of_two", linkageName: "one_of_two", scope: !2, file: !2, type: !7, flags: DIFlagArtificial, spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !1)
; !14 = !DILocation(line: 0, scope: !13)
; !15 = !DILocation(line: 0, scope: !16)
; !16 = !DILexicalBlockFile(scope: !13, file: !2, discriminator: 455082031)
; !17 = !DILocation(line: 0, scope: !18)
; !18 = !DILexicalBlockFile(scope: !13, file: !2, discriminator: 455082039)
; !19 = distinct !DISubprogram(name: "none", linkageName: "none", scope: !2, file: !2, type: !7, flags: DIFlagArtificial, spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !1)
; !20 = !DILocation(line: 0, scope: !19)
; !21 = !DILocation(line: 0, scope: !22)
; !22 = !DILexicalBlockFile(scope: !19, file: !2, discriminator: 455082031)
; !23 = !DILocation(line: 0, scope: !24)
; !24 = !DILexicalBlockFile(scope: !19, file: !2, discriminator: 455082039)
